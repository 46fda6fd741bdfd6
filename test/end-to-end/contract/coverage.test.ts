/** Every sentence of the specification and every decision of ours is claimed, by its id, by the title of a test. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from 'vitest';

import { decisions, sentences } from './sentences.ts';

const root = path.resolve(import.meta.dirname, '..');

/** The ids in brackets that titles begin with: `test('[delete-2, delete-3] ...`. */
async function claimedIds(): Promise<readonly string[]> {
  const names = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.test.ts'));
  const sources = await Promise.all(names.map((name) => readFile(path.join(root, name), 'utf8')));
  return sources.flatMap((source) =>
    [...source.matchAll(/^\s*test\(\s*['"]\[([\w, -]+)\] /gm)].flatMap(([, ids = '']) => ids.split(', ')),
  );
}

test('every sentence and every decision has its test, and every id that a test claims exists', async () => {
  const known = [...Object.keys(sentences), ...Object.keys(decisions)];
  expect([...new Set(await claimedIds())].toSorted()).toEqual(known.toSorted());
});
