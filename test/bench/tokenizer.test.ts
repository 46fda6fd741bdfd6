/** A tiny run of the tokenizer's benchmark, so that it keeps running. */
import { expect, it } from 'vitest';
import { renderTokenizer, runTokenizerBench } from '../../bench/tokenizer/bench.ts';

it('a byte of every part of Unicode has its cost', async () => {
  const report = await runTokenizerBench({ bytes: 1024, processorMs: 1, rowLength: 0x1000, command: 'test' });
  const groups = [report.ordinary, report.hostile, report.rows, report.marks];
  for (const { ns_per_byte: cost, growth } of groups.flat()) {
    expect(cost).toBeGreaterThan(0);
    expect(growth).toBeGreaterThan(0);
  }
  expect(report.rows.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['U+0000 to U+0fff', 'U+e0000 to U+e0fff']),
  );
  expect(report.marks.length).toBeGreaterThan(5);
  expect(renderTokenizer(report)).toContain('the slowest');
});
