/**
 * What the store costs: opening a large index, searching while it is rewritten, searching what is not in
 * memory. All on files made here.
 */
import { integer } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment } from '../lib/environment.ts';
import { maximum, quantile, spread, type Spread } from '../lib/statistics.ts';
import { openStoreStage, type StoreStage } from './stage.ts';

const settings = {
  documents: integer(100_000, 'documents of one chunk each'),
  dim: integer(16, 'dimensions of a token vector'),
  rows: integer(64, 'token vectors of a document'),
  rounds: integer(5, 'rounds'),
};

export const store = benchmark({
  name: 'store',
  summary: 'opening a large index, searching while it is rewritten, searching what is not in memory',
  settings,
  run,
  render: (report) => `${JSON.stringify({ ...report, environment: undefined }, null, 2)}\n`,
});

const openRounds = 5;
const searchMs = 3_000;
/** Nothing is rewritten unless a measurement asks for it. */
const quiet = { wasteAgeMsMax: Number.MAX_SAFE_INTEGER };

interface Latency {
  readonly searches: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly maximum_ms: number;
}

async function run({
  documents,
  dim,
  rows,
  rounds,
  command,
  onProgress,
}: OptionsOf<typeof settings>): Promise<object> {
  const shape = { documents, dim, rows };
  await using stage = await openStoreStage(shape);
  const index = await stage.open({ ...quiet, copyBytesPerSecond: Infinity });
  await stage.fill(index, (filled) => {
    if (filled % 50_000 === 0) onProgress(`${filled} documents`);
  });
  await index.settled();
  const { segments } = index.statistics();
  await stage.close(index);
  return {
    environment: describeEnvironment(command, stage.kernel, []),
    shape,
    segments: segments.map(({ state, records, fileBytes, derivedBytes }) => ({
      state,
      records,
      file_bytes: fileBytes,
      derived_bytes: derivedBytes,
    })),
    open: { warm: await timeOpen(stage, false), cold: await timeOpen(stage, true) },
    cold_search: await timeCold(stage, rounds),
    merging: await timeMerging(stage, rounds),
  };
}

async function timeOpen(stage: StoreStage, cold: boolean): Promise<Spread> {
  const times: number[] = [];
  for (let round = 0; round < openRounds; round += 1) {
    if (cold) await stage.dropCache();
    const start = performance.now();
    const index = await stage.open(quiet);
    times.push(performance.now() - start);
    await stage.close(index);
  }
  return spread(times);
}

/** Exact scoring of one document in 128, all over the files, the first time and again. */
async function timeCold(stage: StoreStage, rounds: number): Promise<{ cold_ms: Spread; warm_ms: Spread }> {
  const [cold, warm]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    await stage.dropCache();
    const index = await stage.open(quiet);
    cold.push((await stage.search(index, round)).exactMs);
    warm.push((await stage.search(index, round)).exactMs);
    await stage.close(index);
  }
  return { cold_ms: spread(cold), warm_ms: spread(warm) };
}

/** Searches one after the other, undisturbed and while the whole index is rewritten at its pace, in turn. */
async function timeMerging(stage: StoreStage, rounds: number) {
  const times: { undisturbed: number[]; merging: number[] } = { undisturbed: [], merging: [] };
  let merges = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const state of ['undisturbed', 'merging'] as const) {
      const index = await stage.open(quiet);
      if (state === 'merging') await stage.remove(index, round);
      const rewritten = state === 'merging' ? index.mergeAll().then(() => (merges += 1)) : undefined;
      const end = performance.now() + searchMs;
      let isMerging = rewritten !== undefined;
      void rewritten?.then(() => (isMerging = false));
      while (rewritten === undefined ? performance.now() < end : isMerging) {
        times[state].push((await stage.search(index)).ms);
      }
      await rewritten;
      await stage.close(index);
    }
  }
  const [undisturbed, merging] = [latency(times.undisturbed), latency(times.merging)];
  return { merges, undisturbed, merging, p99_ratio: merging.p99_ms / undisturbed.p99_ms };
}

function latency(times: readonly number[]): Latency {
  return {
    searches: times.length,
    p50_ms: quantile(times, 0.5),
    p99_ms: quantile(times, 0.99),
    maximum_ms: maximum(times),
  };
}
