/** Groups of encoders come and go: what is loaded, what makes room, what is refused. The clock is the test's. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type GroupChange, type ModelGroup, ModelGroups } from '../../../src/app/models/model-groups.ts';
import type { InstalledModel } from '../../../src/encoder/model/installed-models.ts';
import type { EncoderModel } from '../../../src/encoder/protocol/contract.ts';
import { wordModel, WordEncoder } from '../../support/encoder/word-encoder.ts';

const oneEach = ['first', 'second', 'third', 'fourth'].map((name) => installedModel(name));
const limits = { deadlineMs: Infinity, signal: new AbortController().signal };
const idleMs = 600_000;

function installedModel(name: string, version = '1'): InstalledModel {
  return { name, version, directory: '', graphVersion: '1' };
}

interface FakeGroup extends ModelGroup {
  readonly pool: WordEncoder;
  closed: boolean;
}

/** Groups that serve at once, where `ready` says nothing else. `damaged` is a version that they leave out, or fail for. */
function stage(
  ready: (name: string) => Promise<void> = async () => undefined,
  withIndexes: string[] = [],
  installed: readonly InstalledModel[] = oneEach,
  damaged?: string,
) {
  const started: FakeGroup[] = [];
  const changes: string[] = [];
  const start = (models: readonly InstalledModel[]): FakeGroup => {
    const encoder = new WordEncoder();
    const [wanted] = models as readonly [InstalledModel];
    const { name } = wanted;
    const sound = models.filter(({ version }) => version !== damaged);
    encoder.served = sound.map(({ version }): EncoderModel => ({ ...wordModel, name, version }));
    const isDamaged = wanted.version === damaged;
    // Its encoder never serves.
    if (isDamaged)
      encoder.awaitModel = async () => {
        await vi.advanceTimersByTimeAsync(1);
        throw new Error('nothing serves');
      };
    const group: FakeGroup = {
      models: () => (isDamaged ? models : sound),
      pool: encoder,
      ready: isDamaged ? Promise.reject(new Error('its manifest is damaged')) : ready(name),
      closed: false,
      statistics: async () => [],
      async close() {
        group.closed = true;
      },
    };
    group.ready.catch(() => undefined);
    started.push(group);
    return group;
  };
  const groups = new ModelGroups({
    first: start([installedModel('first')]),
    installed: async () => installed,
    withIndexes: async () => withIndexes.map((name) => ({ name, version: '1' })),
    start: async (models) => start(models),
    loadedMax: 3,
    idleMs,
    onChange: ({ change, models, loaded }: GroupChange) =>
      changes.push(`${change} ${models[0]!.name} ${loaded}`),
  });
  const use = async (name: string): Promise<string | undefined> =>
    (await groups.awaitModel({ name, version: '1' }, limits))?.name;
  const open = (): string[] =>
    started.filter(({ closed }) => !closed).map((group) => group.models()[0]!.name);
  return { groups, started, changes, use, open };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('an installed model is loaded when it is asked for, once; one that is not installed does not exist', async () => {
  const { groups, use, open } = stage();
  expect(open()).toEqual(['first']);
  await expect(Promise.all([use('second'), use('second')])).resolves.toEqual(['second', 'second']);
  await expect(use('first')).resolves.toBe('first');
  expect(open()).toEqual(['first', 'second']);
  await expect(use('fifth')).resolves.toBeUndefined();
  await expect(groups.awaitModel({ name: 'second', version: '2' }, limits)).resolves.toBeUndefined();
  expect(groups.models().map(({ name }) => name)).toEqual(['first', 'second']);
});

it('a group that nothing used for the idle time ends; the first one stays', async () => {
  const { use, open, changes } = stage();
  await use('second');
  await vi.advanceTimersByTimeAsync(idleMs - 20_000);
  await use('second');
  await vi.advanceTimersByTimeAsync(idleMs - 20_000);
  expect(open()).toEqual(['first', 'second']);
  await vi.advanceTimersByTimeAsync(idleMs / 2);
  expect(open()).toEqual(['first']);
  expect(changes).toEqual(['loading second 2', 'loaded second 2', 'unloaded second 1']);
  await expect(use('second')).resolves.toBe('second');
});

it('the models of indexes are loaded at the start, as far as there is room, and stay through an idle hour', async () => {
  const indexes = ['third', 'first', 'not installed', 'second', 'fourth'];
  const { groups, use, open, started } = stage(undefined, indexes);
  await groups.loadWithIndexes();
  expect(open()).toEqual(['first', 'third', 'second']);
  await vi.advanceTimersByTimeAsync(3_600_000);
  await expect(use('third')).resolves.toBe('third');
  expect(started).toHaveLength(3);
  // Its indexes are deleted.
  indexes.splice(0, 1);
  await vi.advanceTimersByTimeAsync(2 * idleMs);
  expect(open()).toEqual(['first', 'second']);
  await groups.close();
});

it('a model of indexes that does not load does not keep the others from serving', async () => {
  const broken = async (name: string): Promise<void> => {
    if (name === 'second') throw new Error('its file is damaged');
  };
  const { groups, open } = stage(broken, ['second', 'third']);
  await groups.loadWithIndexes();
  await vi.advanceTimersByTimeAsync(0);
  expect(open()).toEqual(['first', 'third']);
  await groups.close();
});

it('where all places are taken, the one that was idle longest makes room, and none that is in use', async () => {
  const { groups, use, open, started } = stage();
  await use('second');
  await use('third');
  await expect(use('fourth')).rejects.toMatchObject({ code: 'service_unavailable', retryAfterSeconds: 10 });
  expect(open()).toEqual(['first', 'second', 'third']);

  // A query keeps its group, however long it takes.
  const answer = Promise.withResolvers<void>();
  started[1]!.pool.beforeQuery = () => answer.promise;
  const options = { ...limits, model: { name: 'second', version: '1' }, tenantId: 't' };
  const query = groups.encodeQuery('a', options);
  await vi.advanceTimersByTimeAsync(11_000);
  await expect(use('fourth')).resolves.toBe('fourth');
  expect(open()).toEqual(['first', 'second', 'fourth']);
  answer.resolve();
  await expect(query).resolves.toMatchObject({ rows: 1 });
});

it('a model that does not load says why, and is tried again later', async () => {
  let broken = true;
  const { groups, use, open, started } = stage(async (name) => {
    if (name === 'second' && broken) throw new Error('its file is damaged');
  });
  // Its encoder never serves.
  const served = vi.spyOn(WordEncoder.prototype, 'awaitModel');
  served.mockImplementationOnce(async () => {
    await vi.advanceTimersByTimeAsync(1);
    throw new Error('nothing serves');
  });
  const refusal = { code: 'service_unavailable', message: expect.stringContaining('its file is damaged') };
  await expect(use('second')).rejects.toMatchObject(refusal);
  await expect(use('second')).rejects.toMatchObject(refusal);
  expect(started).toHaveLength(2);
  expect(open()).toEqual(['first']);
  broken = false;
  await vi.advanceTimersByTimeAsync(61_000);
  await expect(use('second')).resolves.toBe('second');
  await groups.close();
  served.mockRestore();
});

it('versions with one graph are one group; one that is installed later has another', async () => {
  const sharing = [installedModel('second'), installedModel('second', '2')];
  const { groups, open, changes } = stage(undefined, [], sharing);
  const use = async (version?: string): Promise<string | undefined> =>
    (await groups.awaitModel({ name: 'second', version }, limits))?.version;
  await expect(Promise.all([use('2'), use('1'), use()])).resolves.toEqual(['2', '1', '2']);
  expect(open()).toEqual(['first', 'second']);
  expect(groups.models().map(({ name, version }) => `${name}/${version}`)).toEqual([
    'first/1',
    'second/2',
    'second/1',
  ]);
  sharing.push(installedModel('second', '3'));
  await expect(Promise.all([use('3'), use('3'), use('2')])).resolves.toEqual(['3', '3', '2']);
  expect(changes).toEqual(['loading second 2', 'loaded second 2', 'loading second 3', 'loaded second 3']);
});

it('a damaged version fails for itself, with the reason, and those with its graph serve', async () => {
  const sharing = [installedModel('second'), installedModel('second', '2')];
  const { groups, open } = stage(undefined, [], sharing, '2');
  const use = async (version: string): Promise<string | undefined> =>
    (await groups.awaitModel({ name: 'second', version }, limits))?.version;
  const refusal = {
    code: 'service_unavailable',
    message: expect.stringMatching(/version 2 .*its manifest is damaged/),
  };
  await expect(use('1')).resolves.toBe('1');
  await expect(use('2')).rejects.toMatchObject(refusal);
  await expect(use('1')).resolves.toBe('1');
  expect(open()).toEqual(['first', 'second']);
});

it('a version serves though one with its graph has failed before', async () => {
  const sharing = [installedModel('second'), installedModel('second', '2')];
  const { groups } = stage(undefined, [], sharing, '2');
  const use = async (version: string): Promise<string | undefined> =>
    (await groups.awaitModel({ name: 'second', version }, limits))?.version;
  await expect(use('2')).rejects.toMatchObject({ code: 'service_unavailable' });
  await expect(use('1')).resolves.toBe('1');
});

it('closing ends every group, and nothing is loaded any more', async () => {
  const { groups, use, open } = stage();
  await use('second');
  await groups.close();
  expect(open()).toEqual([]);
  await expect(use('third')).rejects.toMatchObject({ code: 'service_unavailable' });
});
