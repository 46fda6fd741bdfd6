/** Tiny runs of the benchmarks that start a service, so that they keep running. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { runServiceBenchmark } from '../../support/run-benchmark.ts';

type Numbers = Readonly<Record<string, number>>;

it('the stages of a search add up to what the client waited', async () => {
  const { report, printed } = await runServiceBenchmark<{
    readonly sides: readonly {
      readonly stages: Readonly<Record<string, { readonly p50: number }>>;
      readonly overhead_rounds: readonly number[];
      readonly splits: readonly Numbers[];
    }[];
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
  expect(printed).toContain('overhead');
});

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
});
