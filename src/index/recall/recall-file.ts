/** The recall of an index in a file beside its segments. It is derived data: an index without it is measured again. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { hasCode, withCode } from '../../system-errors.ts';
import type { BlobStore } from '../storage/blob-store.ts';
import { checkedJson, readCheckedJson } from '../storage/checked-json.ts';
import { breadthMax, breadthMin } from './breadth.ts';
import type { RecallState } from './index-recall.ts';

const share = z.number().min(0).max(1);
const breadth = z.number().min(breadthMin).max(breadthMax);
const chunks = z.number().int().min(0);
const stateSchema = z.strictObject({
  breadth,
  comparisons: z.array(z.strictObject({ breadth, chunks: chunks.optional(), at10: share, at100: share })),
  chunks,
  codebooks: z.array(z.string()),
});
/** Files of earlier releases have no checksum. */
const uncheckedStart = '{"breadth":';

export function recallFile(indexId: string): string {
  return `${indexId}/recall.json`;
}

/**
 * `undefined` if there is no such file.
 * @throws an error with code `corrupt` if the file is damaged.
 */
export async function readRecall(
  blobs: Pick<BlobStore, 'open'>,
  indexId: string,
): Promise<RecallState | undefined> {
  const name = recallFile(indexId);
  let text;
  try {
    text = await readFile(await blobs.open(name), 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    return stateSchema.parse(text.startsWith(uncheckedStart) ? JSON.parse(text) : readCheckedJson(text));
  } catch (error) {
    throw withCode('corrupt', `${name} is damaged; recall is being measured again`, error);
  }
}

export async function writeRecall(
  blobs: Pick<BlobStore, 'create' | 'seal'>,
  indexId: string,
  state: RecallState,
): Promise<void> {
  const name = recallFile(indexId);
  const path = await blobs.create(name);
  await writeFile(`${path}.tmp`, checkedJson(state), { mode: 0o600 });
  await rename(`${path}.tmp`, path);
  await blobs.seal(name);
}
