/** Tiny runs of the benchmarks that start a service, so that they keep running. */
import { expect, it } from 'vitest';
import { renderHost, runHostBench, workNames } from '../../bench/host/bench.ts';
import { renderLoop, runLoopBench } from '../../bench/loop/bench.ts';
import { renderStages, runStagesBench } from '../../bench/stages/bench.ts';

const common = { environment: {}, command: 'test', onProgress: () => undefined };

it('the stages of a search add up to what the client waited', async () => {
  const report = await runStagesBench({
    ...common,
    beir: undefined,
    documents: 4,
    queries: 5,
    rounds: 2,
    warmUp: 5,
    against: undefined,
  });
  const [side] = report.sides;
  expect(report.sides).toHaveLength(1);
  expect(side?.overhead_rounds).toHaveLength(2);
  const { overhead, total, run, engine } = side!.stages;
  expect(run.p50).toBeGreaterThan(0);
  expect(engine.p50).toBeGreaterThan(0);
  expect(overhead.p50).toBeGreaterThan(0);
  expect(total.p50).toBeGreaterThan(overhead.p50);
  for (const split of side!.splits) {
    const { overhead: own, total: all, ...stages } = split;
    const sum = Object.values(stages).reduce((ms, stage) => ms + stage, 0);
    expect(sum).toBeCloseTo(all, 1);
    expect(all - split.run - split.engine).toBeCloseTo(own, 6);
  }
  expect(report.floor.http).toBeGreaterThan(0);
  expect(report.floor.grpc).toBeGreaterThan(0);
  expect(renderStages(report)).toContain('floor');
}, 120_000);

it('the event loops are watched before and during upserts', async () => {
  const report = await runLoopBench({ ...common, documents: 2, documentBytes: 4096, seconds: 1 });
  for (const delays of [report.idle, report.loaded]) {
    expect(delays.encoder_p99_ms).toBeGreaterThanOrEqual(0);
    expect(delays.api_p99_ms).toBeLessThan(10_000);
    expect(delays.search_p50_ms).toBeGreaterThan(0);
  }
  expect(renderLoop(report)).toContain('in flight');
}, 120_000);

it('each thread of a host is measured under every kind of work', async () => {
  const report = await runHostBench({
    ...common,
    beir: undefined,
    documents: 20,
    seconds: 2,
    works: workNames,
  });
  expect(report.rows.map(({ work }) => work)).toEqual(workNames);
  for (const { rate, microseconds, ceilings } of report.rows) {
    expect(rate).toBeGreaterThan(0);
    for (const spent of Object.values(microseconds)) expect(spent).toBeGreaterThanOrEqual(0);
    expect(ceilings.api_event_loop).toBeCloseTo(1e6 / microseconds.api_event_loop, 6);
    // Neither can do more than it has time for; a clock of hundredths of a second may be off by a few.
    expect(rate / ceilings.api_event_loop).toBeLessThan(1.1);
    expect(rate / ceilings.encoder_event_loop).toBeLessThan(1.1);
  }
  expect(renderHost(report)).toContain('search, 32 in flight');
}, 120_000);
