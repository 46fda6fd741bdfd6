/** The recall of an index in a file beside its segments. It is derived data: a file that cannot be read counts as none. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { BlobStore } from '../storage/blob-store.ts';
import { breadthMax, breadthMin } from './breadth.ts';
import type { RecallState } from './index-recall.ts';

export function recallFile(indexId: string): string {
  return `${indexId}/recall.json`;
}

export async function readRecall(
  blobs: Pick<BlobStore, 'open'>,
  indexId: string,
): Promise<RecallState | undefined> {
  try {
    const state = JSON.parse(
      await readFile(await blobs.open(recallFile(indexId)), 'utf8'),
    ) as Partial<RecallState>;
    const { breadth = 0, comparisons, chunks = 0, codebooks } = state;
    if (
      !(breadth >= breadthMin && breadth <= breadthMax) ||
      !Array.isArray(comparisons) ||
      !Array.isArray(codebooks)
    )
      return undefined;
    return { breadth, comparisons, chunks, codebooks };
  } catch {
    return undefined;
  }
}

export async function writeRecall(
  blobs: Pick<BlobStore, 'create' | 'seal'>,
  indexId: string,
  state: RecallState,
): Promise<void> {
  const name = recallFile(indexId);
  const path = await blobs.create(name);
  await writeFile(`${path}.tmp`, JSON.stringify(state), { mode: 0o600 });
  await rename(`${path}.tmp`, path);
  await blobs.seal(name);
}
