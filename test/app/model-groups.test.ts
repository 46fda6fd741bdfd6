/** Groups of encoders come and go: what is loaded, what makes room, what is refused. The clock is the test's. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type GroupChange, type ModelGroup, ModelGroups } from '../../src/app/model-groups.ts';
import type { EncoderModel } from '../../src/encoder/protocol/contract.ts';
import { wordModel, WordEncoder } from '../support/encoder/word-encoder.ts';

const names = ['first', 'second', 'third', 'fourth'];
const limits = { deadlineMs: Infinity, signal: new AbortController().signal };
const idleMs = 600_000;

interface FakeGroup extends ModelGroup {
  readonly pool: WordEncoder;
  closed: boolean;
}

/** Groups that serve at once, where `ready` says nothing else. */
function stage(ready: (name: string) => Promise<void> = async () => undefined, withIndexes: string[] = []) {
  const started: FakeGroup[] = [];
  const changes: string[] = [];
  const start = (name: string): FakeGroup => {
    const encoder = new WordEncoder();
    const model: EncoderModel = { ...wordModel, name };
    encoder.served = [model];
    const group: FakeGroup = {
      model: { name, version: '1', directory: '' },
      pool: encoder,
      ready: ready(name),
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
    first: start('first'),
    installed: async () => names.map((name) => ({ name, version: '1', directory: '' })),
    withIndexes: async () => withIndexes.map((name) => ({ name, version: '1' })),
    start: async ({ name }) => start(name),
    loadedMax: 3,
    idleMs,
    onChange: ({ change, model, loaded }: GroupChange) => changes.push(`${change} ${model.name} ${loaded}`),
  });
  const use = async (name: string): Promise<string | undefined> =>
    (await groups.awaitModel({ name, version: '1' }, limits))?.name;
  const open = (): string[] => started.filter(({ closed }) => !closed).map(({ model }) => model.name);
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

it('closing ends every group, and nothing is loaded any more', async () => {
  const { groups, use, open } = stage();
  await use('second');
  await groups.close();
  expect(open()).toEqual([]);
  await expect(use('third')).rejects.toMatchObject({ code: 'service_unavailable' });
});
