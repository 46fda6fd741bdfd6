import { expect, it } from 'vitest';
import { stageBoundsMs, StageTimes } from '../../../src/encoder/scheduling/stage-times.ts';

it('counts each request once in every stage, up to the first bound that holds it', () => {
  const times = new StageTimes();
  times.observe('query', { tokenizeMs: 0.1, queueMs: 0.11, runMs: 1e9, rowsMs: 0 });
  times.observe('query', { tokenizeMs: 0, queueMs: 0.2, runMs: 5, rowsMs: 0 });
  times.observe('document', { tokenizeMs: 1, queueMs: 1, runMs: 1, rowsMs: 0 });
  const of = (kind: string, stage: string) =>
    times.snapshot().find((each) => each.kind === kind && each.stage === stage)!;
  expect(of('query', 'tokenize').counts.slice(0, 2)).toEqual([2, 0]);
  expect(of('query', 'queue').counts.slice(0, 2)).toEqual([0, 2]);
  expect(of('query', 'run').counts.at(-1)).toBe(1);
  expect(of('query', 'run').counts[stageBoundsMs.indexOf(5)]).toBe(1);
  expect(of('query', 'run').sumMs).toBe(1e9 + 5);
  for (const { kind, counts } of times.snapshot()) {
    expect(counts).toHaveLength(stageBoundsMs.length + 1);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(kind === 'query' ? 2 : 1);
  }
});
