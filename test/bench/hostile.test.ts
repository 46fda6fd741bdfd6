/** A tiny run of the benchmark of hostile requests, so that it keeps running. */
import { expect, it } from 'vitest';
import { renderHostile, runHostileBench } from '../../bench/hostile/bench.ts';

it('another tenant and the event loop are watched while a hostile request is answered', async () => {
  const report = await runHostileBench({
    attacks: ['large numbers'],
    against: undefined,
    environment: {},
    command: 'test',
    onProgress: () => undefined,
  });
  const [row] = report.rows;
  expect(report.rows).toHaveLength(1);
  expect(row?.healthz_max_ms).toBeGreaterThan(0);
  expect(row?.search_max_ms).toBeGreaterThanOrEqual(row?.search_p50_ms ?? Number.NaN);
  expect(row?.event_loop_max_ms).toBeGreaterThan(0);
  expect(row?.searches_failed).toBe(0);
  expect(renderHostile(report)).toContain('large numbers');
}, 120_000);
