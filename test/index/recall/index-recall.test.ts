/** Which searches are measured, and what a measured search does to the index: with a driven clock and an engine that the test plays. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { NativeSearch, NativeSearchResult } from '../../../src/index/engine/native.ts';
import { breadthMax, breadthMin, safeBreadth } from '../../../src/index/recall/breadth.ts';
import {
  IndexRecall,
  type IndexRecallDeps,
  type RecallState,
} from '../../../src/index/recall/index-recall.ts';
import { defaultRecallSettings, Measuring } from '../../../src/index/recall/measuring.ts';
import { measuresAll, resultOf, searched, segmentOf } from './simulated-index.ts';

const exact = Float32Array.from({ length: 100 }, (_, place) => 100 - place);

function opened(more: Partial<IndexRecallDeps> = {}) {
  const asked: NativeSearch[] = [];
  const index = { chunks: 1_000, codebook: 'codebook-1', moves: 0 };
  const answer = { found: exact, failure: undefined as Error | undefined };
  const saved: RecallState[] = [];
  const recall = new IndexRecall({
    measuring: measuresAll(),
    segments: () => [segmentOf(index.chunks, index.codebook)],
    ask: async (search): Promise<NativeSearchResult> => {
      asked.push(search);
      if (answer.failure !== undefined) throw answer.failure;
      return search.plan === 'exact' ? resultOf(exact, 'exact') : resultOf(answer.found);
    },
    moves: () => index.moves,
    onMove: () => {},
    save: async (state) => void saved.push(state),
    ...more,
  });
  const measure = async (count: number): Promise<void> => {
    for (let search = 0; search < count; search += 1)
      if (recall.chooses('codes')) await recall.measure(searched);
  };
  return { recall, measure, asked, index, answer, saved };
}

const engineError = (code: string): Error => Object.assign(new Error(code), { code });

it('a process measures one in a thousand, one at a time, and rests so that it takes one percent of the processors', async () => {
  const state = { ms: 0, random: 0.0009, wait: false };
  const settings = { ...defaultRecallSettings, random: () => state.random, nowMs: () => state.ms };
  const measuring = new Measuring({ settings, threads: 4, searchesWait: () => state.wait });
  expect(measuring.chooses(false)).toBe(true);
  state.random = 0.001;
  expect(measuring.chooses(false)).toBe(false);
  expect(measuring.chooses(true)).toBe(true);
  state.random = 0.1;
  expect(measuring.chooses(true)).toBe(false);
  state.random = 0;
  state.wait = true;
  expect(measuring.chooses(true)).toBe(false);
  state.wait = false;
  const failed = measuring.run(async () => {
    expect(measuring.chooses(true)).toBe(false);
    state.ms = 8;
    throw new Error('it failed');
  });
  await expect(failed).rejects.toThrow('it failed');
  // 8 ms of one of four processors are one percent of 200 ms.
  state.ms = 199;
  expect(measuring.chooses(true)).toBe(false);
  state.ms = 200;
  expect(measuring.chooses(true)).toBe(true);
  // It waited most of the time.
  await measuring.run(async () => {
    state.ms = 10_000;
    return 2;
  });
  expect(measuring.chooses(true)).toBe(true);
});

it('nothing is measured without a target, and the breadth is 1', () => {
  const measuring = measuresAll({ settings: { ...defaultRecallSettings, target: 0, shareOfNew: 1 } });
  const known = { breadth: 3, comparisons: [], chunks: 1, codebooks: [] };
  const { recall } = opened({ measuring, known });
  expect(recall.chooses('codes')).toBe(false);
  expect(recall.breadth).toBe(1);
});

it('a measured search runs by default and exactly, in the background, on its snapshot and with its filter', async () => {
  const { recall, asked } = opened();
  const filters = { filterTerms: new Uint8Array(16), where: new Uint8Array(3) };
  await recall.measure({ ...searched, ...filters, topK: 3, candidateK: 7, grouped: true, components: true });
  const { query, offsets, generation } = searched;
  const both = { query, offsets, generation, ...filters, topK: 100, candidateK: 200, components: false };
  expect(asked).toMatchObject([both, { ...both, plan: 'exact' }]);
  for (const search of asked) {
    expect(search).toMatchObject({ background: true, breadth: safeBreadth });
    expect(search).not.toHaveProperty('grouped');
  }
  expect(recall.report).toMatchObject({ comparisons: 1, at10: { mean: 1 }, at100: { mean: 1 } });
});

it('searches that score every chunk do not count', async () => {
  const { recall } = opened();
  expect(recall.chooses('exact')).toBe(false);
  expect(recall.chooses('device')).toBe(false);
  const small = opened({ ask: async () => resultOf(exact, 'exact') });
  await small.measure(1);
  expect(small.recall.report).toBeUndefined();
});

it('does not go on with a search once others wait, once records have moved, or once it is stopped', async () => {
  const state = { wait: false };
  const waits = opened({ measuring: measuresAll({ searchesWait: () => state.wait }) });
  const measured = waits.measure(1);
  state.wait = true;
  await measured;
  expect(waits.asked).toHaveLength(1);
  const moves = opened({
    ask: async () => {
      moves.index.moves += 1;
      return resultOf(exact);
    },
  });
  await moves.measure(1);
  const stops = opened();
  const stopped = stops.measure(1);
  stops.recall.stop();
  await stopped;
  await turn();
  for (const { recall, saved } of [waits, moves, stops]) {
    expect(recall.report).toBeUndefined();
    expect(saved).toEqual([]);
  }
  expect(stops.recall.chooses('codes')).toBe(false);
});

it('an engine that gives up is no failure, and any other failure is reported', async () => {
  const { recall, measure, answer } = opened();
  for (const code of ['deadline_exceeded', 'closed', 'absent', 'values_missing']) {
    answer.failure = engineError(code);
    await measure(1);
  }
  answer.failure = engineError('io');
  await expect(recall.measure(searched)).rejects.toThrow('io');
  expect(recall.report).toBeUndefined();
  answer.failure = undefined;
  await measure(1);
  expect(recall.report).toBeDefined();
});

it('one in ten is measured until 300 with the present breadth are newer than the last large change', async () => {
  const state = { ms: 0, random: 0 };
  const settings = {
    ...defaultRecallSettings,
    load: Infinity,
    random: () => state.random,
    nowMs: () => state.ms,
  };
  const measuring = new Measuring({ settings, threads: 2, searchesWait: () => false });
  // It stays there, for nothing is missed.
  const known = { breadth: breadthMin, comparisons: [], chunks: 1_000, codebooks: ['codebook-1'] };
  const { recall, measure, index } = opened({ measuring, known });
  const isNew = (): boolean => {
    state.random = 0.05;
    const chosen = recall.chooses('codes');
    state.random = 0;
    return chosen;
  };
  await measure(299);
  expect(isNew()).toBe(true);
  await measure(1);
  expect(isNew()).toBe(false);
  const { breadth } = recall;
  for (const change of [{ chunks: 2_000 }, { codebook: 'codebook-2' }]) {
    Object.assign(index, change);
    // It looks once a second.
    expect(isNew()).toBe(false);
    state.ms += 1_000;
    expect(isNew()).toBe(true);
    expect(recall.report).toBeUndefined();
    expect(recall.breadth).toBe(breadth);
    await measure(300);
    expect(isNew()).toBe(false);
  }
  Object.assign(index, { chunks: 3_999 });
  state.ms += 1_000;
  expect(isNew()).toBe(false);
});

it('a move of the breadth makes what was measured before count no more', async () => {
  const state = { random: 0 };
  const settings = { ...defaultRecallSettings, load: Infinity, random: () => state.random };
  const { recall, measure, answer } = opened({
    measuring: new Measuring({ settings, threads: 2, searchesWait: () => false }),
  });
  answer.found = exact.map((score, place) => (place < 5 ? score : -1));
  await measure(25);
  expect(recall.breadth).toBe(breadthMax);
  expect(recall.report).toBeUndefined();
  // It is measured as a new index.
  state.random = 0.05;
  expect(recall.chooses('codes')).toBe(true);
  state.random = 0;
  answer.found = exact.map((score, place) => (place < 2 ? score : -1));
  await measure(1);
  expect(recall.report).toMatchObject({ comparisons: 1, at10: { mean: 0.2 } });
  expect(recall.report!.at10.high - recall.report!.at10.low).toBeGreaterThan(0.5);
  await measure(299);
  expect(recall.report).toMatchObject({ breadth: breadthMax, comparisons: 300 });
  state.random = 0.05;
  expect(recall.chooses('codes')).toBe(false);
});

it('the state is kept, and goes on after the index is opened again', async () => {
  const first = opened();
  await first.measure(30);
  expect(first.saved).toHaveLength(1);
  const [known] = first.saved;
  expect(known?.comparisons).toHaveLength(25);
  const second = opened({ known });
  expect(second.recall.breadth).toBe(first.recall.breadth);
  await second.measure(1);
  expect(second.recall.report?.comparisons).toBe(26);
});
