/** Archives of what several nodes share: moves into a cluster and back, backups beside writers, restores that are cut off. */
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseConfig, type Config } from '../../../src/app/config.ts';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { tableNames } from '../../../src/catalog/contents.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { prepareDataDirectory } from '../../../src/catalog/data-directory.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { readContents } from '../../../src/catalog/sqlite/contents.ts';
import { Interruption } from '../../../src/cli/failure.ts';
import { verifyIndexes } from '../../../src/cli/index/index-verify.ts';
import { createEngine } from '../../../src/index/engine/native.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import { openS3ObjectStore } from '../../../src/index/storage/s3-object-store.ts';
import { createService } from '../../../src/service/create-service.ts';
import { removeGarbage } from '../../../src/service/garbage.ts';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
import { StageTimings } from '../../../src/service/stage-timings.ts';
import { answersOf, goldenSettings, plainUsage, type Golden } from '../../fixtures/backup/golden.ts';
import { rounds } from '../../rounds.ts';
import { newDatabase, queryDatabase, serversMs } from '../../support/cluster/servers.ts';
import { WordEncoder } from '../../support/encoder/word-encoder.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { run, start } from '../../support/commands/command-process.ts';
import { eventually } from '../../support/running/eventually.ts';
import { announceRandom } from '../../support/running/random.ts';
import { newTenant } from '../../support/stages/catalog-fixture.ts';
import { documentAt } from '../../support/stages/index-stage.ts';
import { nameTenant } from '../../support/stages/older-names.ts';
import { openServiceStage } from '../../support/stages/service-stage.ts';
import { backUp, restoreTo } from './commands.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/backup');
const archive = path.join(fixtures, 'format-1.tar');
const golden = JSON.parse(readFileSync(path.join(fixtures, 'format-1.json'), 'utf8')) as Golden;
const random = announceRandom('interrupted restores into a cluster');
const kills = rounds({ short: 1, nightly: 100 });
const cuts = rounds({ short: 3, nightly: 50 });

const servers = useStageServers();
/** The archive, restored into a data directory. */
let embedded: string;
beforeAll(async () => {
  Object.assign(process.env, servers.weed.environment);
  embedded = path.join(await newDirectory(), 'data');
  await restoreTo(embedded, archive);
}, serversMs);

interface EmptyCluster {
  readonly config: Config;
  /** The same, as variables of a process. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A database and a place for objects that nobody has used. `pepper`: the archive's unless another is given. */
async function emptyCluster(pepper?: Uint8Array): Promise<EmptyCluster> {
  const directory = await newDirectory();
  const file = path.join(directory, 'key-pepper');
  await writeFile(file, pepper ?? readFileSync(path.join(embedded, 'key-pepper')), { mode: 0o600 });
  const variables = {
    MAXSIMD_DATA_DIR: path.join(directory, 'data'),
    MAXSIMD_CATALOG_URL: await newDatabase(servers.postgres),
    MAXSIMD_BLOBS_URL: `s3://${servers.weed.bucket}/${randomUUID()}`,
    MAXSIMD_LIMITER_URL: 'redis://127.0.0.1:1',
    MAXSIMD_KEY_PEPPER_FILE: file,
  };
  return { config: parseConfig(variables), environment: { ...servers.weed.environment, ...variables } };
}

const intoCluster = (config: Config, options: Partial<Parameters<typeof restoreTo>[2]> = {}) =>
  restoreTo(config.MAXSIMD_DATA_DIR, archive, { config, ...options });
const outOfCluster = (config: Config, file: string, options: Partial<Parameters<typeof backUp>[2]> = {}) =>
  backUp(config.MAXSIMD_DATA_DIR, file, { config, ...options });

async function withCatalog<T>(config: Config, work: (catalog: ClusterCatalog) => Promise<T>): Promise<T> {
  const keyPepper = readFileSync(config.MAXSIMD_KEY_PEPPER_FILE);
  const catalog = await openPostgresCatalog({ url: config.MAXSIMD_CATALOG_URL, keyPepper });
  try {
    return await work(catalog);
  } finally {
    await catalog.close();
  }
}

const validKeys = (config: Config): Promise<number> =>
  withCatalog(config, async (catalog) => {
    const keys = await Promise.all(golden.tenants.map(({ id }) => catalog.listKeys(id)));
    return keys.flat().filter((key) => key.revokedAtMs === undefined).length;
  });

const refused = (message: RegExp) => ({ code: 'restore_failed', message: expect.stringMatching(message) });

/** All rows, in order. */
async function contentsOf(directory: string): Promise<Readonly<Record<string, readonly string[]>>> {
  const contents = await readContents(directory);
  try {
    const tables: Record<string, readonly string[]> = {};
    for (const table of tableNames) {
      const rows: string[] = [];
      for await (const some of contents.rows(table))
        rows.push(...some.map((row) => row.map(String).join(' ')));
      tables[table] = rows.toSorted();
    }
    return tables;
  } finally {
    contents.close();
  }
}

/** A service of one node. */
async function openNode(config: Config) {
  const keyPepper = readFileSync(config.MAXSIMD_KEY_PEPPER_FILE);
  const catalog = await openPostgresCatalog({ url: config.MAXSIMD_CATALOG_URL, keyPepper });
  const objects = openS3ObjectStore(config.MAXSIMD_BLOBS_URL);
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const directory = path.join(await newDirectory(), 'cache');
  const cache = await openBlobCache({ directory, objects, bytesMax: 2 ** 30, onError });
  const clock = { ms: Date.now() };
  const service = await createService({
    catalog,
    encoders: new WordEncoder(),
    engine: createEngine({ threads: 2, kernel: 'auto' }),
    blobs: { catalog, objects, cache, replacedKeptMs: 3_600_000, nodeId: randomUUID() },
    limiter: await MemoryLimiter.restore(catalog, clock.ms),
    keyPepper,
    modelOfMoment: (name = 'words') => ({ name }),
    exactTokenVectorsMax: 0,
    indexSettings: goldenSettings,
    onBackgroundError: (_job, error) => onError(error),
    nowMs: () => clock.ms,
  });
  const stage = { service, clock } as unknown as Parameters<typeof answersOf>[0];
  return { service, catalog, stage, errors, close: () => service.drain().finally(() => objects.close()) };
}

describe('a data directory', () => {
  it('moves into a cluster and back, and answers the same everywhere', async () => {
    const { config } = await emptyCluster();
    const moved = await intoCluster(config);
    expect(moved).toMatchObject({
      document: { directory: null, indexes: golden.tenants.length, problems: [] },
    });
    expect(await readdir(config.MAXSIMD_DATA_DIR)).toEqual([]);
    expect(await verifyIndexes(config, { index: undefined })).toMatchObject({ failed: false });

    const keyId = golden.tenants[0]!.apiKey.slice(9, 21);
    const ended = { digest: Buffer.alloc(32, 5), keyId, expiresAtMs: Date.now() + 3_600_000 };
    await withCatalog(config, (catalog) => catalog.endSession(ended));

    // Before anybody has served or merged.
    const place = await newDirectory();
    const file = path.join(place, 'back.tar');
    expect(await outOfCluster(config, file)).toMatchObject({
      failed: false,
      document: { indexes: golden.tenants.length, key_pepper: true, problems: [] },
    });
    const back = path.join(place, 'data');
    await restoreTo(back, file);
    const [before, after] = [await contentsOf(embedded), await contentsOf(back)];
    expect(before['versions']!.length).toBeGreaterThan(100);
    expect(before['usage_months']!.length).toBe(golden.tenants.length);
    const sessions = [[ended.digest, keyId, ended.expiresAtMs].map(String).join(' ')];
    expect(after).toEqual({ ...before, ended_sessions: sessions });

    const node = await openNode(config);
    for (const { id, apiKey, revokedKey, index, answers, usage } of golden.tenants) {
      expect(plainUsage(await node.catalog.usageTotals(id, golden.month))).toEqual(usage);
      const { tenant, permit } = await node.service.admit(`Bearer ${apiKey}`);
      permit.release();
      await expect(node.service.admit(`Bearer ${revokedKey}`)).rejects.toMatchObject({
        code: 'authentication_failed',
      });
      expect(await answersOf(node.stage, tenant, index)).toEqual(answers);
    }
    await node.service.maintain();
    expect(node.errors).toEqual([]);
    await node.close();

    // Merged segments give the same answers when they are moved back into a data directory.
    const merged = path.join(place, 'merged.tar');
    await outOfCluster(config, merged);
    const home = path.join(place, 'home');
    await restoreTo(home, merged);
    expect(await verifyIndexes(parseConfig({ MAXSIMD_DATA_DIR: home }), { index: undefined })).toMatchObject({
      failed: false,
    });
    await using stage = await openServiceStage(home, goldenSettings);
    for (const { apiKey, index, answers } of golden.tenants) {
      const { tenant, permit } = await stage.service.admit(`Bearer ${apiKey}`);
      permit.release();
      expect(await answersOf(stage, tenant, index)).toEqual(answers);
    }
    await stage.service.maintain();
    expect(stage.errors).toEqual([]);
  });

  it('renames tenants whose names PostgreSQL cannot hold, and says so', async () => {
    const directory = path.join(await newDirectory(), 'data');
    await prepareDataDirectory(directory);
    const older = await openCatalog({ directory });
    const pepper = older.keyPepper();
    const tenants = [await newTenant(older), await newTenant(older), await newTenant(older)];
    await older.close();
    const names = ['Ac\0me', 'Ac\0me', 'one\nline'];
    for (const [place, { id }] of tenants.entries()) await nameTenant(directory, id, names[place]!);
    const file = path.join(directory, '../older.tar');
    await backUp(directory, file);

    const { config } = await emptyCluster(pepper);
    const { text } = await restoreTo(config.MAXSIMD_DATA_DIR, file, { config });
    const restored = await withCatalog(config, (catalog) => catalog.listTenants());
    const nameOf = new Map(restored.map(({ id, name }) => [id, name]));
    expect(tenants.map(({ id }) => nameOf.get(id))).toEqual(['Ac\ufffdme', 'Ac\ufffdme', 'one\nline']);
    for (const { id } of tenants.slice(0, 2))
      expect(text).toContain(`Tenant ${id} is called "Ac\ufffdme" now`);
    expect(text).not.toContain(tenants[2]!.id);
  });

  it('goes on in a cluster where it was: new documents, new keys, new indexes', async () => {
    const { config } = await emptyCluster();
    await intoCluster(config);
    const node = await openNode(config);
    const [{ apiKey, index }] = golden.tenants as readonly [Golden['tenants'][number]];
    const { tenant, permit } = await node.service.admit(`Bearer ${apiKey}`);
    permit.release();
    const context = () => ({
      requestId: randomUUID(),
      tenant,
      signal: new AbortController().signal,
      deadlineMs: Date.now() + 60_000,
      startedAtMs: Date.now(),
      timings: new StageTimings(),
      spent: { inputTokens: 0, documents: 0 },
    });
    const made = await node.service.createIndex(context(), { name: 'later', metadataSchema: '{}' });
    for (const indexId of [index.id, made.id]) {
      const document = { docId: 'd1', text: 'wholly new words', metadata: '{"version":"new"}' };
      await node.service.upsertDocuments(context(), indexId, [document]);
      const request = { query: 'wholly new words', topK: 1, returnComponents: false };
      expect((await node.service.search(context(), indexId, request)).results).toMatchObject([
        { docId: 'd1', metadata: '{"version":"new"}' },
      ]);
      expect(await node.service.deleteDocument(context(), indexId, 'd1')).toBe(true);
    }
    expect(node.errors).toEqual([]);
    await node.close();
  });
});

describe('backup of a cluster', () => {
  it('is one moment beside writers and merges, and has all that was answered before', async () => {
    await using stage = await servers.openStage();
    const settings = { sealedSegmentsMax: 2, codesTokenVectorsMin: 8, wasteAgeMsMax: 0 };
    const nodes = [await stage.newNode({ settings }), await stage.newNode({ settings })];
    // Each writer replaces its three documents at once: in no moment do their versions differ.
    let answered = [0, 0];
    const over = new AbortController();
    const write = async (writer: number): Promise<void> => {
      for (let version = 1; !over.signal.aborted; version += 1) {
        const ids = ['a', 'b', 'c'].map((letter) => `${letter}${writer}`);
        await nodes[writer]!.upsert(ids.map((docId) => documentAt(docId, version % 8, { version })));
        answered = answered.with(writer, version);
      }
    };
    const writing = nodes.map((_node, place) => write(place));
    const place = await newDirectory();
    let fresh = 0;
    await using ending = new AsyncDisposableStack();
    ending.defer(async () => {
      over.abort();
      await Promise.all(writing);
    });
    await eventually(() => Math.min(...answered) > 0);
    for (let take = 0; take < 3; take += 1) {
      await delay(300);
      const least = answered;
      const file = path.join(place, `${take}.tar`);
      expect(await outOfCluster(stage.config, file)).toMatchObject({ failed: false });
      const directory = path.join(place, String(take));
      await restoreTo(directory, file);
      const versions = (await contentsOf(directory))['versions']!;
      expect(versions.length).toBe(6);
      for (const [writer, known] of least.entries()) {
        const stored = versions
          .filter((row) => new RegExp(` [abc]${writer} `).test(row))
          .map((row) => Number(/"version":(\d+)/.exec(row)?.[1]));
        expect(new Set(stored).size).toBe(1);
        expect(stored[0]).toBeGreaterThanOrEqual(known);
        fresh += stored[0]!;
      }
    }
    await ending.disposeAsync();
    expect(fresh).toBeGreaterThan(12);
    expect((await stage.catalog.readHead(stage.indexId))?.layout).toBeGreaterThan(0);
  });

  it('names an object that is lost, and saves the rest', async () => {
    await using stage = await servers.openStage();
    const node = await stage.newNode();
    for (const [place, docId] of ['a', 'b', 'c'].entries()) await node.upsert([documentAt(docId, place)]);
    const [lost] = await queryDatabase(
      stage.url,
      `SELECT blob FROM segments WHERE state = 'sealed' ORDER BY id`,
    );
    await stage.objects.remove(lost!['blob'] as string);
    const place = await newDirectory();
    const file = path.join(place, 'damaged.tar');
    const problem = { index_id: stage.indexId, file: lost!['blob'], problem: 'is missing' };
    expect(await outOfCluster(stage.config, file)).toMatchObject({
      failed: true,
      document: { problems: [problem] },
    });
    const directory = path.join(place, 'data');
    await expect(restoreTo(directory, file)).rejects.toMatchObject({ code: 'archive_refused' });
    expect(await restoreTo(directory, file, { acceptDamage: true })).toMatchObject({
      document: { segments: 3, records: 2, problems: [{ file: lost!['blob'] }] },
    });
  });

  it('names documents that lie nowhere', async () => {
    await using stage = await servers.openStage();
    const node = await stage.newNode();
    await node.upsert(['a', 'b'].map((docId, place) => documentAt(docId, place)));
    await queryDatabase(stage.url, 'DELETE FROM placements WHERE record = 1');
    const problem = { index_id: stage.indexId, file: '', problem: expect.stringMatching(/^1 documents lie/) };
    expect(await outOfCluster(stage.config, path.join(await newDirectory(), 'a.tar'))).toMatchObject({
      failed: true,
      document: { segments: 1, problems: [problem] },
    });
  });

  it('fails by name when an object was replaced and removed while it went on', async () => {
    await using stage = await servers.openStage();
    const node = await stage.newNode();
    await node.upsert([documentAt('a', 1)]);
    const [{ blob }] = (await queryDatabase(
      stage.url,
      `SELECT blob FROM segments WHERE state = 'sealed'`,
    )) as [{ blob: string }];
    await stage.objects.remove(blob);
    let isReplaced = false;
    const signal = {
      throwIfAborted() {
        if (isReplaced) return;
        isReplaced = true;
        // The moment is taken; a merge comes before the object is asked for.
        const script = `import { Client } from 'pg'; const client = new Client(process.env.URL); await client.connect();
          await client.query("UPDATE segments SET state = 'replaced'"); await client.end();`;
        const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
          env: { ...process.env, URL: stage.url },
          cwd: path.resolve(fixtures, '../../..'),
        });
        expect(status).toBe(0);
      },
    } as AbortSignal;
    const place = await newDirectory();
    await expect(outOfCluster(stage.config, path.join(place, 'late.tar'), { signal })).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringMatching(/MAXSIMD_REPLACED_KEPT_SECONDS must be longer/),
    });
    expect(await readdir(place)).toEqual([]);
  });
});

describe('restore into a cluster', () => {
  it('leaves nothing that serves, wherever it is cut off, and can be run again', async () => {
    const { config } = await emptyCluster();
    const isEmpty = () => withCatalog(config, async (catalog) => (await catalog.listTenants()).length === 0);
    /** Aborted when it has been asked so often. */
    const abortedAfter = (steps: number) => {
      let asked = 0;
      const throwIfAborted = (): void => {
        asked += 1;
        if (asked > steps) throw new Interruption('SIGINT');
      };
      return { signal: { throwIfAborted } as AbortSignal, asked: () => asked };
    };
    const whole = abortedAfter(Infinity);
    const measured = await emptyCluster();
    await intoCluster(measured.config, { signal: whole.signal });
    for (let cut = 1; cut <= cuts; cut += 1) {
      const { signal } = abortedAfter(Math.floor((whole.asked() * cut) / (cuts + 0.1)));
      await expect(intoCluster(config, { signal })).rejects.toMatchObject({ code: 'interrupted' });
      expect(await isEmpty()).toBe(true);
    }
    const left = await queryDatabase(config.MAXSIMD_CATALOG_URL, 'SELECT id, state, blob FROM segments');
    expect(left.length).toBeGreaterThan(0);
    expect(left.every(({ id, state }) => Number(id) < 0 && state === 'uploading')).toBe(true);
    await intoCluster(config);
    expect(await verifyIndexes(config, { index: undefined })).toMatchObject({ failed: false });

    // Objects that no restore came to name are garbage after a day, and no others are.
    await queryDatabase(
      config.MAXSIMD_CATALOG_URL,
      `UPDATE segments SET since = now() - interval '25 hours'`,
    );
    const objects = openS3ObjectStore(config.MAXSIMD_BLOBS_URL);
    const removed = await withCatalog(config, (catalog) => removeGarbage(catalog, objects, 1_000));
    expect(removed).toBe(left.length);
    await expect(objects.readPart(left[0]!['blob'] as string, 0, 1)).rejects.toMatchObject({
      code: 'ENOENT',
    });
    objects.close();
    expect(await verifyIndexes(config, { index: undefined })).toMatchObject({ failed: false });
    const file = path.join(await newDirectory(), 'back.tar');
    await outOfCluster(config, file);
    const back = path.join(await newDirectory(), 'data');
    await restoreTo(back, file);
    expect(await contentsOf(back)).toEqual(await contentsOf(embedded));
  });

  it(
    'survives kill -9 at any time',
    async () => {
      let cluster = await emptyCluster();
      const startedAt = performance.now();
      await run(['restore', archive], { environment: cluster.environment });
      const wholeMs = performance.now() - startedAt;
      cluster = await emptyCluster();
      for (let round = 0; round < kills; round += 1) {
        const running = start(['restore', archive], { environment: cluster.environment });
        await delay(random.next() * wholeMs);
        running.process.kill('SIGKILL');
        await running.finished;
        const tenants = await withCatalog(cluster.config, (catalog) => catalog.listTenants());
        if (tenants.length === 0) continue;
        // It was faster: all of it is there.
        expect(tenants.length).toBe(golden.tenants.length);
        expect(await verifyIndexes(cluster.config, { index: undefined })).toMatchObject({ failed: false });
        cluster = await emptyCluster();
      }
      expect(await intoCluster(cluster.config)).toMatchObject({ document: { problems: [] } });
      expect(await verifyIndexes(cluster.config, { index: undefined })).toMatchObject({ failed: false });
    },
    kills * 10_000 + 60_000,
  );

  it('needs an empty catalog, also at its very end', async () => {
    const { config } = await emptyCluster();
    await intoCluster(config);
    await expect(intoCluster(config)).rejects.toMatchObject(refused(/not empty: it has tenants/));
    // A tenant that is deleted leaves objects and documents for a while.
    await withCatalog(config, async (catalog) => {
      for (const { id } of await catalog.listTenants()) await catalog.deleteTenant(id);
    });
    await expect(intoCluster(config)).rejects.toMatchObject(refused(/deleted .* not been removed/));

    const late = await emptyCluster();
    let isLate = false;
    const signal = {
      throwIfAborted() {
        if (isLate) return;
        isLate = true;
        const args = ['src/cli/main.ts', 'tenant', 'create', '--name', 'quick'];
        const env = { ...process.env, ...late.environment };
        const cwd = path.resolve(fixtures, '../../..');
        expect(spawnSync(process.execPath, args, { env, cwd }).status).toBe(0);
      },
    } as AbortSignal;
    await expect(intoCluster(late.config, { signal })).rejects.toMatchObject(refused(/it has tenants/));
    await withCatalog(late.config, async (catalog) => {
      expect((await catalog.listTenants()).map(({ name }) => name)).toEqual(['quick']);
    });
  });

  it('needs the key pepper of the archive, and takes it after it was refused another', async () => {
    const { config } = await emptyCluster(randomBytes(32));
    const other = refused(/another pepper than MAXSIMD_KEY_PEPPER_FILE/);
    await expect(intoCluster(config)).rejects.toMatchObject(other);
    await cp(path.join(embedded, 'key-pepper'), config.MAXSIMD_KEY_PEPPER_FILE);
    await intoCluster(config);
    expect(await validKeys(config)).toBe(golden.tenants.length);
  });

  it('revokes every key without the key pepper of the archive', async () => {
    const { config } = await emptyCluster(randomBytes(32));
    await intoCluster(config, { withoutKeyPepper: true });
    expect(await validKeys(config)).toBe(0);
  });

  it('refuses options that are for data directories', async () => {
    const { config } = await emptyCluster();
    for (const options of [{ keyPepper: 'file' }, { acceptDamage: true }]) {
      await expect(intoCluster(config, options)).rejects.toMatchObject({ code: 'usage_error', exitCode: 2 });
    }
    await mkdir(config.MAXSIMD_DATA_DIR, { recursive: true });
    expect(await readdir(config.MAXSIMD_DATA_DIR)).toEqual([]);
  });
});
