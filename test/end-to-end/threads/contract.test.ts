/** The contract's own suite, and those of ends, crashes, tenants and faults, unchanged, before a service with three threads. */
import { expect, it } from 'vitest';
import { rerunTests } from '../../support/stages/rerun.ts';

/** Its files, one after the other. */
const suitesMs = 3_600_000;
const suites = [
  'contract',
  'encoder',
  'monitoring',
  'robustness',
  'tenants',
  'admin',
  'backup',
  'canary',
  'crash',
  'deadline',
  'full-disk',
  'model-version',
  'restart',
  'signals',
  'start',
  'unreadable',
  'visibility',
].map((name) => `test/end-to-end/${name}`);

it.runIf(process.env['TEST_NIGHTLY'] === '1')('holds', { timeout: suitesMs }, async () => {
  const environment = { MAXSIMD_API_THREADS: '3', TEST_NIGHTLY: '' };
  const { code, output } = await rerunTests(suites, { environment });
  expect(code, output).toBe(0);
  expect(output).toMatch(/Tests +\d{2,} passed/);
});
