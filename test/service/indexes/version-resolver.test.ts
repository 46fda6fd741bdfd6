import { expect, it } from 'vitest';
import type { StoredDocument } from '../../../src/catalog/contract.ts';
import { VersionResolver } from '../../../src/service/indexes/version-resolver.ts';

function stage(charactersMax?: number) {
  const asked: number[][] = [];
  const catalog = {
    async resolveVersions(indexId: string, versionIds: readonly number[]) {
      asked.push([...versionIds]);
      const known = versionIds.filter((id) => (indexId === 'even') === (id % 2 === 0));
      return new Map<number, StoredDocument>(
        known.map((id) => [id, { docId: `d${id}`, metadata: '{"long":"metadata"}', chunkCount: 1 }]),
      );
    },
  };
  return { asked, versions: new VersionResolver(catalog, charactersMax) };
}

it('asks the catalog once for a version', async () => {
  const { asked, versions } = stage();
  await versions.resolve('even', [2, 4]);
  const resolved = await versions.resolve('even', [4, 6, 2]);
  expect(
    [...resolved].map(([id, { docId }]) => [id, docId]).toSorted(([a], [b]) => Number(a) - Number(b)),
  ).toEqual([
    [2, 'd2'],
    [4, 'd4'],
    [6, 'd6'],
  ]);
  expect(asked).toEqual([[2, 4], [6]]);
});

it('gives an index none of another’s versions, kept or not', async () => {
  const { versions } = stage();
  await versions.resolve('even', [2]);
  expect([...(await versions.resolve('odd', [2, 3])).keys()]).toEqual([3]);
  expect([...(await versions.resolve('even', [3, 2])).keys()]).toEqual([2]);
});

it('keeps no absence: a version that is stored later is found', async () => {
  const { asked, versions } = stage();
  await versions.resolve('even', [3]);
  await versions.resolve('even', [3]);
  expect(asked).toEqual([[3], [3]]);
});

it('keeps what is used and forgets what is not, within its bound', async () => {
  const { asked, versions } = stage(4000);
  for (let id = 2; id <= 400; id += 2) await versions.resolve('even', [2, id]);
  expect(asked.filter((ids) => ids.includes(2))).toHaveLength(1);
  await versions.resolve('even', [4]);
  expect(asked.filter((ids) => ids.includes(4))).toHaveLength(2);
});
