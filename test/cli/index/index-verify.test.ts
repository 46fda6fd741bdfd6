/** `maxsimd index verify` names the damage of a data directory wherever the service would refuse to start. */
import { copyFile, cp, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { segmentOfColumn } from '../../../src/index/segments/derived-data.ts';
import { verifyIndexes } from '../../../src/cli/index/index-verify.ts';
import { parseConfig } from '../../../src/app/config.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { openServiceStage } from '../../support/stages/service-stage.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

let whole: string;
let indexId: string;
let segment: string;
beforeAll(async () => {
  const stage = await openServiceStage(await newDirectory());
  const tenant = await stage.newTenant();
  indexId = await tenant.createIndex();
  await stage.service.upsertDocuments(
    tenant.context(),
    indexId,
    Array.from({ length: 50 }, (_document, place) => ({
      docId: `d${place}`,
      text: 'red green',
      metadata: `{"place":${place},"filler":"${'x'.repeat(300)}"}`,
    })),
  );
  await stage.service.drain();
  whole = stage.directory;
  const [found] = await readdir(path.join(whole, 'segments', indexId));
  segment = `${indexId}/${found}`;
});

const verify = (directory: string, only?: string) =>
  verifyIndexes(parseConfig({ MAXSIMD_DATA_DIR: directory }), { index: only });

async function copyOf(change: (directory: string) => Promise<unknown>): Promise<string> {
  const directory = path.join(await newDirectory(), 'data');
  await cp(whole, directory, { recursive: true });
  await change(directory);
  return directory;
}

/** Changes the first byte of some text in a file, or the one at a place. */
const flip = (name: string, where: string | number) => async (directory: string) => {
  const file = path.join(directory, name);
  const bytes = await readFile(file);
  bytes[typeof where === 'number' ? where : bytes.indexOf(where)]! ^= 1;
  await writeFile(file, bytes);
};

const problem = (file: string, words: RegExp, of = '') => ({
  index_id: of,
  file,
  problem: expect.stringMatching(words),
});

describe('index verify', () => {
  it('finds nothing in a directory that is whole', async () => {
    for (const only of [undefined, indexId]) {
      expect(await verify(whole, only)).toMatchObject({
        document: { indexes: 1, segments: 1, records: 50, problems: [], unreferenced_files: [] },
        failed: false,
      });
    }
  });

  it('says that there is no catalog in a directory that was never used', async () => {
    const directory = await newDirectory();
    await expect(verify(directory)).rejects.toMatchObject({ code: 'not_found' });
    expect(await readdir(directory)).toEqual([]);
  });

  it.each([
    ['a missing catalog', (at: string) => rm(path.join(at, 'catalog.db')), 'catalog.db', /^is missing/],
    ['a catalog with a damaged first page', flip('catalog.db', 60), 'catalog.db', /^is damaged/],
    ['a missing key pepper', (at: string) => rm(path.join(at, 'key-pepper')), 'key-pepper', /^is missing/],
    ['a foreign key pepper', flip('key-pepper', 3), 'key-pepper', /^is not the one/],
    [
      'a catalog older than the segments',
      async (at: string) => {
        const mark = path.join(at, 'segments', 'catalog-mark');
        await writeFile(mark, (await readFile(mark, 'utf8')).replace(/ \d/, ' 9'));
      },
      'catalog.db',
      /^is older than the segments/,
    ],
    ['a damaged usage ledger', flip('usage.db', 100), 'usage.db', /damaged/],
  ])('names %s, and verifies the segments all the same', async (_what, change, file, words) => {
    const directory = await copyOf(change);
    expect(await verify(directory)).toMatchObject({
      document: { segments: 1, problems: [problem(file, words)] },
      text: expect.stringMatching(file),
      failed: true,
    });
  });

  it('names a catalog of which every other one would be right', async () => {
    const other = await newDirectory();
    await (await openCatalog({ directory: other })).close();
    const directory = await copyOf(async (at) => {
      for (const name of ['catalog.db', 'key-pepper']) {
        await copyFile(path.join(other, name), path.join(at, name));
      }
    });
    const { document } = await verify(directory);
    expect(document).toMatchObject({
      problems: [
        problem('catalog.db', /^is not the catalog that the segments belong to/),
        problem(segment, /^is a segment that the catalog does not name/, indexId),
      ],
    });
  });

  it('names a damaged page of the catalog, and the index that it hits', async () => {
    const directory = await copyOf(flip('catalog.db', '"place":7'));
    for (const only of [undefined, indexId]) {
      const { document, failed } = await verify(directory, only);
      expect(failed).toBe(true);
      expect(document).toMatchObject({
        problems: [
          ...(only === undefined ? [problem('catalog.db', /^its table versions is damaged/)] : []),
          problem('catalog.db', /^its documents cannot be read/, indexId),
        ],
      });
    }
  });

  it('names damage on each page of the catalog, whatever it needs that page for', async () => {
    const pageBytes = 4096;
    const { length } = await readFile(path.join(whole, 'catalog.db'));
    for (let page = 0; page < length / pageBytes; page += 1) {
      const { document, failed } = await verify(await copyOf(flip('catalog.db', page * pageBytes + 1000)));
      expect(failed, `page ${page}`).toBe(true);
      expect(document).toMatchObject({
        problems: expect.arrayContaining([problem('catalog.db', /damage|Freelist/)]),
      });
    }
  });

  it('names a damaged column, and not one of another format or one that is cut short', async () => {
    const settings = { segmentTokenVectorsMax: 64, codesTokenVectorsMin: 1 };
    const stage = await openServiceStage(await newDirectory(), settings);
    const { context, createIndex, search } = await stage.newTenant();
    const id = await createIndex();
    for (let place = 0; place < 40; place += 1) {
      const metadata = `{"place":${place}}`;
      const document = { docId: `d${place}`, text: `red ${place}`, metadata };
      await stage.service.upsertDocuments(context(), id, [document]);
    }
    const found = await search(id, 'red', { where: '{"place":{"gte":20}}', topK: 100 });
    expect(found.results).toHaveLength(20);
    const columns = async () =>
      (await readdir(path.join(stage.directory, 'segments', id))).filter(
        (name) => segmentOfColumn(name) !== undefined,
      );
    await expect.poll(columns).not.toEqual([]);
    await stage.service.drain();
    const nothing = { document: { indexes: 1, problems: [], unreferenced_files: [] }, failed: false };
    expect(await verify(stage.directory)).toMatchObject(nothing);

    const [name = ''] = await columns();
    const file = `segments/${id}/${name}`;
    const { length } = await readFile(path.join(stage.directory, file));
    for (const at of [0, 20, 64, length - 1]) {
      await flip(file, at)(stage.directory);
      expect(await verify(stage.directory), `byte ${at} of ${length}`).toMatchObject({
        document: { problems: [problem(`${id}/${name}`, /./, id)] },
        failed: true,
      });
      await flip(file, at)(stage.directory);
    }
    await flip(file, 8)(stage.directory);
    expect(await verify(stage.directory)).toMatchObject(nothing);
    await rename(path.join(stage.directory, file), path.join(stage.directory, `${file}.tmp`));
    expect(await verify(stage.directory)).toMatchObject({
      document: { problems: [], unreferenced_files: [`${id}/${name}.tmp`] },
      failed: false,
    });
  });

  it('names segments that the catalog does not, of its indexes and of others', async () => {
    const other = '00000000-0000-4000-8000-000000000001';
    const directory = await copyOf(async (at) => {
      await mkdir(path.join(at, 'segments', other));
      for (const to of [`${indexId}/999.seg`, `${other}/7.seg`, `${other}/7.seg.postings`]) {
        await copyFile(path.join(at, 'segments', segment), path.join(at, 'segments', to));
      }
    });
    const { document, failed } = await verify(directory);
    expect(failed).toBe(true);
    expect(document).toMatchObject({
      problems: [
        problem(`${indexId}/999.seg`, /^is a segment that the catalog does not name/, indexId),
        problem(`${other}/7.seg`, /^is a segment that the catalog does not name/, other),
      ],
      unreferenced_files: [`${indexId}/999.seg`, `${other}/7.seg`, `${other}/7.seg.postings`],
    });
  });

  it('names a segment whose file is missing', async () => {
    const directory = await copyOf((at) => rm(path.join(at, 'segments', segment)));
    expect(await verify(directory)).toMatchObject({
      document: {
        indexes: 1,
        segments: 1,
        records: 0,
        problems: [problem(segment, /^is missing$/, indexId)],
      },
      failed: true,
    });
  });

  it('names a damaged segment where there is no catalog to ask', async () => {
    const directory = await copyOf(async (at) => {
      await rm(path.join(at, 'catalog.db'));
      await flip(`segments/${segment}`, 20)(at);
    });
    expect((await verify(directory)).document).toMatchObject({
      problems: [problem('catalog.db', /^is missing/), problem(segment, /damaged/, indexId)],
    });
  });
});
