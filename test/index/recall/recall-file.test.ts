/** A damaged `recall.json` is refused: each byte, name and value is changed, with the checksum and without one. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readRecall, recallFile, writeRecall } from '../../../src/index/recall/recall-file.ts';
import type { RecallState } from '../../../src/index/recall/index-recall.ts';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import { announceRandom } from '../../support/running/random.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const indexId = 'i';
const state: RecallState = {
  breadth: 0.5,
  comparisons: [{ breadth: 2, at10: 0.9, at100: 0.85 }],
  chunks: 1_000,
  codebooks: ['codebook-1'],
};

async function opened() {
  const directory = await newDirectory();
  const blobs = await openLocalBlobStore(directory);
  await writeRecall(blobs, indexId, state);
  const file = path.join(directory, recallFile(indexId));
  const text = await readFile(file, 'utf8');
  const read = async (content: string | Buffer): Promise<RecallState | undefined> => {
    await writeFile(file, content);
    return readRecall(blobs, indexId);
  };
  return { blobs, text, read };
}

/** Every text that comes of `value` by one renamed key, or one value in the place of another. */
function changed(value: unknown): readonly unknown[] {
  const strange = [null, -1, 1e9, 'x', {}, [null], true].filter(
    (other) => JSON.stringify(other) !== JSON.stringify(value),
  );
  if (typeof value !== 'object' || value === null) return strange;
  if (Array.isArray(value))
    return [
      ...strange,
      ...value.flatMap((item, place) => changed(item).map((other) => value.with(place, other))),
    ];
  return [
    ...strange,
    ...Object.entries(value).flatMap(([key, member]) => {
      const { [key]: _gone, ...rest } = value as Record<string, unknown>;
      return [
        { ...rest, [`x${key.slice(1)}`]: member },
        ...changed(member).map((other) => ({ ...rest, [key]: other })),
      ];
    }),
  ];
}

it('what was written is read, and no file is none', async () => {
  const { blobs, text, read } = await opened();
  expect(await readRecall(blobs, indexId)).toEqual(state);
  expect(await readRecall(blobs, 'other')).toBeUndefined();
  expect(await read(text)).toEqual(state);
});

it('a flipped bit in any byte and every lost end is damage', async () => {
  const { text, read } = await opened();
  const random = announceRandom('flipped bits');
  const intact = Buffer.from(text);
  for (let place = 0; place < intact.length; place += 1) {
    const bytes = Buffer.from(intact);
    const bit = random.integer(0, 7);
    bytes[place]! ^= 1 << bit;
    await expect(read(bytes), `bit ${bit} of byte ${place}`).rejects.toMatchObject({ code: 'corrupt' });
  }
  for (let length = 0; length < intact.length; length += 1)
    await expect(read(intact.subarray(0, length)), `${length} bytes`).rejects.toMatchObject({
      code: 'corrupt',
    });
});

it('a file of an earlier release, without a checksum, is read, and what cannot be in it is damage', async () => {
  const { read } = await opened();
  expect(await read(JSON.stringify(state))).toEqual(state);
  for (const other of changed(state)) {
    const text = JSON.stringify(other);
    const found = await read(text).catch((error: unknown) => error);
    if (found instanceof Error) expect(found, text).toMatchObject({ code: 'corrupt' });
    // A number or a name in the place of another one can be right.
    else expect(found, text).toEqual(other);
  }
  for (const text of [
    JSON.stringify(state).replace('at10', 'au10'),
    JSON.stringify({ ...state, comparisons: [null] }),
  ])
    await expect(read(text)).rejects.toMatchObject({ code: 'corrupt' });
});
