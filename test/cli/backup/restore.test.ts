/** `maxsimd restore` makes a data directory, and its key pepper. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { lockDataDirectory } from '../../../src/catalog/data-directory.ts';
import { checksumsName } from '../../../src/cli/backup/archive-format.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { resetKeys } from '../../../src/catalog/sqlite/reset-keys.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { contextOf, documentsOf, openServiceStage } from '../../support/stages/service-stage.ts';
import { archiveOf, entriesOf, type ArchivedFile } from './archives.ts';
import { backUp, restoreTo } from './commands.ts';

const golden = path.resolve(import.meta.dirname, '../../fixtures/backup/format-1.tar');
let whole: Buffer;
beforeAll(async () => {
  whole = await readFile(golden);
});

/** An archive of these files, with their checksums. */
function checksummed(files: readonly ArchivedFile[]): Buffer {
  const listed = files.map(({ name, content }) => ({
    name,
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
  }));
  const checksums = { name: checksumsName, content: Buffer.from(JSON.stringify({ files: listed })) };
  return archiveOf([...files, checksums]);
}

const refusal = (message: RegExp) => ({ code: 'archive_refused', message: expect.stringMatching(message) });

const failure = (message: RegExp) => ({ code: 'restore_failed', message: expect.stringMatching(message) });

describe('restore', () => {
  it('touches nothing when it refuses an archive', async () => {
    const place = await newDirectory();
    const damaged = Buffer.from(whole);
    damaged[whole.length - 20_000]! ^= 1;
    const archive = path.join(place, 'damaged.tar');
    await writeFile(archive, damaged);
    const before = await stat(place);
    await expect(restoreTo(path.join(place, 'data'), archive)).rejects.toMatchObject(
      refusal(/damaged\.tar is damaged: it holds segments\/\S+ with another checksum/),
    );
    expect(await readdir(place)).toEqual(['damaged.tar']);
    expect((await stat(place)).mtimeMs).toBe(before.mtimeMs);
  });

  it('needs a directory that is empty or missing', async () => {
    const directory = await newDirectory();
    await restoreTo(directory, golden);
    await expect(restoreTo(directory, golden)).rejects.toMatchObject(failure(/is not empty/));
    expect((await readdir(directory)).toSorted()).toEqual(
      ['catalog.db', 'key-pepper', 'segments', 'server.lock', 'usage.db'].toSorted(),
    );
  });

  it('refuses a catalog that is not whole, though its checksum says so', async () => {
    const files = entriesOf(whole).map((file) => ({ ...file, content: Buffer.from(file.content) }));
    const catalog = files.find(({ name }) => name === 'catalog.db')!;
    catalog.content[30_000]! ^= 1;
    const place = await newDirectory();
    const archive = path.join(place, 'a.tar');
    await writeFile(archive, checksummed(files.slice(0, -1)));
    const work = restoreTo(path.join(place, 'data'), archive);
    await expect(work).rejects.toMatchObject(refusal(/catalog\.db/));
    expect(await readdir(place)).toEqual(['a.tar']);
  });

  it('does not take the place of one that is under way', async () => {
    const place = await newDirectory();
    await mkdir(path.join(place, 'data.restoring'));
    const lock = lockDataDirectory(path.join(place, 'data.restoring'));
    const work = restoreTo(path.join(place, 'data'), golden);
    await expect(work).rejects.toMatchObject(failure(/another restore makes/));
    lock.release();
    await restoreTo(path.join(place, 'data'), golden);
    expect(await readdir(place)).toEqual(['data']);
  });
});

it('brings back when documents expire, and none that has expired', async () => {
  const place = await newDirectory();
  const archive = path.join(place, 'expiring.tar');
  await using stage = await openServiceStage();
  const { context, createIndex, tenant } = await stage.newTenant();
  const indexId = await createIndex();
  const at = stage.clock.ms + 10_000;
  const put = (docId: string, expiresAtMs: number) =>
    stage.service.upsertDocuments(context(), indexId, documentsOf({ [docId]: 'word' }), { expiresAtMs });
  await put('a', at);
  await put('b', at + 1);
  await backUp(stage.directory, archive);
  await restoreTo(path.join(place, 'data'), archive);
  await using restored = await openServiceStage(path.join(place, 'data'));
  const now = (ms: number) => {
    restored.clock.ms = ms;
    return contextOf(tenant, ms);
  };
  const found = async (ms: number) => {
    const search = { query: 'word', returnComponents: false };
    const { results } = await restored.service.search(now(ms), indexId, search);
    const { documents } = await restored.service.listDocuments(now(ms), indexId, { limit: 10 });
    expect(documents.map(({ docId }) => docId)).toEqual(results.map(({ docId }) => docId));
    return results.map(({ docId }) => docId);
  };
  expect(await found(at - 1)).toEqual(['a', 'b']);
  expect(await restored.service.getDocument(now(at), indexId, 'b')).toMatchObject({ expiresAtMs: at + 1 });
  expect(await found(at)).toEqual(['b']);
  expect(await found(at + 1)).toEqual([]);
});

it('brings back documents whose metadata has a name twice, as earlier versions stored them', async () => {
  const place = await newDirectory();
  const archive = path.join(place, 'twice.tar');
  const metadata = '{"kind":1,"kind":2,"a":{"b":1,"b":2}}';
  await using stage = await openServiceStage();
  const { context, createIndex, tenant } = await stage.newTenant();
  const indexId = await createIndex();
  // The front end refuses such metadata. The service below it stores any text.
  await stage.service.upsertDocuments(context(), indexId, documentsOf({ a: 'word' }, metadata));
  await backUp(stage.directory, archive);
  await restoreTo(path.join(place, 'data'), archive);
  await using restored = await openServiceStage(path.join(place, 'data'));
  for (const { service, clock } of [stage, restored]) {
    const now = () => contextOf(tenant, clock.ms);
    expect(await service.getDocument(now(), indexId, 'a')).toMatchObject({ metadata });
    expect(await service.listDocuments(now(), indexId, { limit: 10 })).toMatchObject({
      documents: [{ metadata }],
    });
    const search = { query: 'word', filter: '{"kind":2,"a":{"b":2}}', returnComponents: false };
    expect(await service.search(now(), indexId, search)).toMatchObject({ results: [{ metadata }] });
  }
});

describe('columns of metadata', () => {
  const column = async (directory: string): Promise<string> => {
    const names = await readdir(path.join(directory, 'segments'), { recursive: true });
    const segment = names.filter((name) => name.endsWith('.seg')).toSorted()[0]!;
    return `segments/${segment}.columns-0123456789abcdef`;
  };
  const restored = async () => {
    const place = await newDirectory();
    const source = path.join(place, 'source');
    await restoreTo(source, golden);
    return { source, target: path.join(place, 'target'), archive: path.join(place, 'a.tar') };
  };

  it('stay behind, and verify takes the restored directory for whole', async () => {
    const { source, target, archive } = await restored();
    await writeFile(path.join(source, await column(source)), 'a column');
    expect(await backUp(source, archive)).toMatchObject({ failed: false });
    const names = entriesOf(await readFile(archive)).map(({ name }) => name);
    expect(names.filter((name) => name.includes('.columns-'))).toEqual([]);
    expect((await restoreTo(target, archive)).document).toMatchObject({ problems: [] });
  });

  it('that are damaged keep no archive from being restored that somebody else has written', async () => {
    const { source, target, archive } = await restored();
    const damaged = { name: await column(source), content: Buffer.from('damaged') };
    await writeFile(archive, checksummed([...entriesOf(whole).slice(0, -1), damaged]));
    expect((await restoreTo(target, archive)).document).toMatchObject({ problems: [] });
  });
});

describe('the key pepper', () => {
  let place: string;
  let without: string;
  let pepper: string;
  beforeAll(async () => {
    place = await newDirectory();
    await restoreTo(path.join(place, 'source'), golden);
    without = path.join(place, 'without.tar');
    await backUp(path.join(place, 'source'), without, { withKeyPepper: false });
    pepper = path.join(place, 'source', 'key-pepper');
  });

  it('is in an archive only where it was asked for, and the archive says whether', async () => {
    const archive = await readFile(without);
    const [manifest, ...files] = entriesOf(archive);
    expect(files.map(({ name }) => name)).not.toContain('key-pepper');
    expect(JSON.parse(manifest!.content.toString())).toMatchObject({ key_pepper: false });
    expect(archive.includes(await readFile(pepper))).toBe(false);
    expect(entriesOf(whole)[0]!.content.toString()).toContain('"key_pepper":true');
    expect((await stat(without)).mode & 0o077).toBe(0);
  });

  it('must be brought where the archive lacks it', async () => {
    const target = path.join(place, 'brought');
    const words = /holds no key pepper.*--key-pepper FILE.*key reset/;
    await expect(restoreTo(target, without)).rejects.toMatchObject(failure(words));
    const foreign = path.join(place, 'foreign');
    await writeFile(foreign, Buffer.alloc(32, 1));
    for (const [keyPepper, wrong] of [
      [foreign, /key-pepper is not the one that the API keys of this catalog were made with/],
      [without, /key-pepper is damaged: it must hold 32 bytes/],
    ] as const) {
      await expect(restoreTo(target, without, { keyPepper })).rejects.toMatchObject(refusal(wrong));
    }
    expect(await readdir(place)).toEqual(['foreign', 'source', 'without.tar']);
    await restoreTo(target, without, { keyPepper: pepper });
    const brought = path.join(target, 'key-pepper');
    expect(await readFile(brought)).toEqual(await readFile(pepper));
    expect((await stat(brought)).mode & 0o777).toBe(0o600);
  });

  it('may be lost: then key reset must follow', async () => {
    const target = path.join(place, 'lost');
    await restoreTo(target, without, { withoutKeyPepper: true });
    await expect(openCatalog({ directory: target })).rejects.toThrow(/key-pepper is missing/);
    expect(await resetKeys(target)).toBe(2);
    await (await openCatalog({ directory: target })).close();
  });

  it('is not brought to an archive that has it', async () => {
    const work = restoreTo(path.join(place, 'both'), golden, { keyPepper: pepper });
    await expect(work).rejects.toMatchObject({ code: 'usage_error', exitCode: 2 });
  });
});

describe('a damaged data directory', () => {
  it('is archived as it is, named by backup, and restored only when that is accepted', async () => {
    const place = await newDirectory();
    const source = path.join(place, 'source');
    await restoreTo(source, golden);
    const names = await readdir(path.join(source, 'segments'), { recursive: true });
    const [damaged, lost] = names.filter((name) => name.endsWith('.seg')).toSorted();
    const file = path.join(source, 'segments', damaged!);
    const content = await readFile(file);
    content[300]! ^= 1;
    await writeFile(file, content);
    await rm(path.join(source, 'segments', lost!));

    const archive = path.join(place, 'a.tar');
    const taken = await backUp(source, archive);
    expect(taken).toMatchObject({
      failed: true,
      text: expect.stringMatching(/What is stored is damaged/),
    });
    expect(taken.document).toMatchObject({
      problems: [
        { file: lost, problem: 'is missing' },
        { file: damaged, problem: expect.stringMatching(/record 0 is damaged/) },
      ],
    });
    const target = path.join(place, 'target');
    await expect(restoreTo(target, archive)).rejects.toMatchObject(
      refusal(/of a damaged data directory.*--accept-damage/),
    );
    const accepted = await restoreTo(target, archive, { acceptDamage: true });
    expect(accepted.document).toMatchObject({ problems: [{}, {}] });
  });

  it.each([0, 20, 5000])('is archived without a usage ledger that is damaged at byte %i', async (at) => {
    const place = await newDirectory();
    const source = path.join(place, 'source');
    await restoreTo(source, golden);
    const ledger = await readFile(path.join(source, 'usage.db'));
    ledger[at]! ^= 1;
    await writeFile(path.join(source, 'usage.db'), ledger);
    const archive = path.join(place, 'a.tar');
    const taken = await backUp(source, archive);
    expect(taken.document).toMatchObject({
      problems: [{ file: 'usage.db', problem: expect.stringMatching(/^the usage ledger is damaged/) }],
    });
    expect(entriesOf(await readFile(archive)).map(({ name }) => name)).not.toContain('usage.db');
    expect((await restoreTo(path.join(place, 'target'), archive)).document).toMatchObject({ problems: [] });
  });

  it('is not archived when its catalog is what is damaged', async () => {
    const place = await newDirectory();
    const source = path.join(place, 'source');
    await restoreTo(source, golden);
    const catalog = await readFile(path.join(source, 'catalog.db'));
    catalog[30_000]! ^= 1;
    await writeFile(path.join(source, 'catalog.db'), catalog);
    await expect(backUp(source, path.join(place, 'a.tar'))).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringMatching(/^catalog\.db: its table indexes is damaged/),
    });
    expect(await readdir(place)).toEqual(['source']);
  });
});
