/** Tiny runs of the benchmarks that start a service, so that they keep running. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { rounds } from '../rounds.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { runServiceBenchmark } from '../support/run-benchmark.ts';

type Numbers = Readonly<Record<string, number>>;

it('the stages of a search add up to what the client waited', async () => {
  const { report, printed } = await runServiceBenchmark<{
    readonly sides: readonly {
      readonly stages: Readonly<Record<string, { readonly p50: number }>>;
      readonly overhead_rounds: readonly number[];
      readonly splits: readonly Numbers[];
    }[];
    readonly floor: Numbers;
  }>('stages', ...'--documents 4 --queries 5 --rounds 2 --warm-up 5'.split(' '));
  const [side] = report.sides;
  expect(report.sides).toHaveLength(1);
  expect(side?.overhead_rounds).toHaveLength(2);
  for (const stage of ['run', 'engine', 'overhead'])
    expect(side?.stages[stage]?.p50, stage).toBeGreaterThan(0);
  for (const { overhead, total, ...stages } of side!.splits) {
    const sum = Object.values(stages).reduce((ms, stage) => ms + stage, 0);
    expect(sum).toBeCloseTo(total!, 1);
    expect(total! - stages['run']! - stages['engine']!).toBeCloseTo(overhead!, 6);
  }
  expect(report.floor['http']).toBeGreaterThan(0);
  expect(report.floor['grpc']).toBeGreaterThan(0);
  expect(printed).toContain('floor');
}, 120_000);

it('the event loops are watched before and during upserts', async () => {
  const { report, printed } = await runServiceBenchmark<Record<'idle' | 'loaded', Numbers>>(
    'loop',
    ...'--documents 2 --kib 4 --seconds 1'.split(' '),
  );
  for (const delays of [report.idle, report.loaded]) {
    expect(delays['encoder_p99_ms']).toBeGreaterThanOrEqual(0);
    expect(delays['api_p99_ms']).toBeLessThan(10_000);
    expect(delays['search_p50_ms']).toBeGreaterThan(0);
  }
  expect(printed).toContain('in flight');
}, 120_000);

it('another tenant and the event loop are watched while a hostile request is answered', async () => {
  const { report, printed } = await runServiceBenchmark<{
    readonly rows: readonly (Numbers & Readonly<Record<'search' | 'large_search' | 'charged', Numbers>>)[];
  }>('hostile', '--attacks', 'large numbers');
  const [row] = report.rows;
  expect(report.rows).toHaveLength(1);
  for (const figure of ['healthz_max_ms', 'event_loop_max_ms', 'peak_mib']) {
    expect(row?.[figure], figure).toBeGreaterThan(0);
  }
  for (const waits of [row?.search, row?.large_search]) {
    expect(waits?.['quiet_p50_ms']).toBeGreaterThan(0);
    expect(waits?.['max_ms']).toBeGreaterThanOrEqual(waits?.['p50_ms'] ?? Number.NaN);
    expect(waits?.['failed']).toBe(0);
  }
  expect(row?.charged['requests']).toBe(1);
  expect(printed).toContain('large numbers');
}, 120_000);

it('the service is asked for more than it can answer, and then for little again', async () => {
  const { report, printed } = await runServiceBenchmark<{
    readonly peak_per_second: number;
    readonly overload: Numbers & { readonly statuses: Numbers; readonly refusal_ms: Numbers | null };
  }>('overload', '--seconds', `${rounds({ short: 2, nightly: 20 })}`, '--callers', '4');
  expect(report.peak_per_second).toBeGreaterThan(0);
  expect(report.overload['answered_per_second']).toBeGreaterThan(0);
  expect(report.overload.statuses['200']).toBeGreaterThan(0);
  // Without the bound on waits they come at the deadline. Two seconds beside other tests tell less.
  const refusalMsMax = rounds({ short: 5_000, nightly: 1_000 });
  expect(report.overload.refusal_ms?.['p50'] ?? 0).toBeLessThan(refusalMsMax);
  expect(printed).toContain('recovery');
}, 240_000);

it('a collection is imported and evaluated', async () => {
  const directory = await newDirectory();
  const write = (name: string, ...lines: readonly string[]): void =>
    writeFileSync(path.join(directory, name), lines.map((line) => `${line}\n`).join(''));
  write('corpus.jsonl', '{"_id":"a","text":"boats on the lake"}', '{"_id":"b","text":"snow in the hills"}');
  write('queries.jsonl', '{"_id":"1","text":"boats on the lake"}');
  write('qrels.tsv', 'query-id\tcorpus-id\tscore', '1\ta\t1');
  const { report, printed } = await runServiceBenchmark<Numbers>('retrieval', '--beir', directory);
  expect(report).toMatchObject({
    settings: { providers: ['cpu'] },
    documents: 2,
    failed_documents: 0,
    queries: 1,
    recall_at_100: 1,
  });
  expect(report['import_seconds']).toBeGreaterThan(0);
  expect(printed).toContain('2 documents, 0 failed');
}, 120_000);
