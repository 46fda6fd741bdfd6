/** The calculations behind the figures of the frontier. */
import { expect, it } from 'vitest';
import { frontiers } from './report.ts';
import { Times, type Point } from './times.ts';

it('counts each query with the least of its times, and the stages of that search', () => {
  const times = new Times();
  times.add(0, 4, { plan: 'lists', candidatesMs: 3, exactMs: 1 });
  times.add(1, 9, { plan: 'codes', candidatesMs: 5, exactMs: 4 });
  times.add(0, 2, { plan: 'lists', candidatesMs: 1, exactMs: 1 });
  times.add(1, 20, { plan: 'codes', candidatesMs: 9, exactMs: 9 });
  expect(times.plans()).toEqual(['codes', 'lists']);
  expect(times.summary()).toEqual({ p50_ms: 5.5, p99_ms: 8.93, candidates_ms: 3, exact_ms: 2.5 });
});

it('gives the cheapest setting that reaches a recall, or says that none does', () => {
  const point = (recall_at_10: number, p50_ms: number, unit_recall_at_10: number | null = null): Point => ({
    variant: 'maxsimd',
    state: 'static',
    kernel: 'avx2',
    threads: 1,
    settings: '',
    bytes_a_token: null,
    recall_at_10,
    recall_at_100: 0,
    unit_recall_at_10,
    scan_recall_at_10: null,
    p50_ms,
    p99_ms: 0,
    candidates_ms: null,
    exact_ms: null,
  });
  const filtered = { ...point(1, 0.1), state: '1/100' };
  expect(frontiers([point(0.7, 1), point(0.96, 3), point(0.97, 2), filtered])).toEqual([
    ['maxsimd', 'avx2', '1', '1.00', '2.00', '2.00', '2.00', 'never', 'never'],
  ]);
  const cosine = { ...point(0.9, 4, 0.985), variant: 'cosine' };
  expect(frontiers([cosine])).toEqual([
    ['cosine', 'avx2', '1', '4.00', '4.00', '4.00', '4.00', '4.00', 'never'],
  ]);
});
