/** Tiny runs of the benchmark of tenants beside each other: every attack, and every victim. */
import { expect, it } from 'vitest';
import { attacks, victims } from '../../../bench/tenants/shapes.ts';
import { runServiceBenchmark } from '../../support/run-benchmark.ts';

interface Report {
  readonly cells: readonly {
    readonly attack: string;
    readonly victim: string;
    readonly failed: number;
    readonly attack_statuses: Readonly<Record<string, number>>;
    readonly ratios: Readonly<Record<'p50' | 'p99', number>>;
    readonly stages?: { readonly attacked: Readonly<Record<string, { readonly p50: number }>> };
  }[];
}

const shape = '--rounds 1 --seconds 1 --stages --window-tokens 20';
const scale = '--wide-documents 100 --upload-texts 2 --exact-documents 10 --small-indexes 3';
const tiny = `${shape} ${scale}`.split(' ');

it.each([
  ['every attack', '--victims=upsert', attacks.map(({ name }) => [name, 'upsert'])],
  ['every victim', '--attacks=lists', victims.map(({ name }) => ['lists', name])],
])('%s is answered', async (_, chosen, expected) => {
  const { report, printed } = await runServiceBenchmark<Report>('tenants', chosen, ...tiny);
  expect(report.cells.map(({ attack, victim }) => [attack, victim])).toEqual(expected);
  for (const { attack, victim, failed, attack_statuses: statuses, ratios, stages } of report.cells) {
    const answered = { failed, statuses: Object.keys(statuses) };
    expect(answered, `${victim} beside ${attack}`).toEqual({ failed: 0, statuses: ['200'] });
    expect(ratios.p99).toBeGreaterThan(0);
    expect(stages?.attacked['total']?.p50).toBeGreaterThan(0);
  }
  expect(printed).toContain('ratio');
});
