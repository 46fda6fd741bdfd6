/** The contract's own suite, and those of ends and crashes, unchanged, before a service with three threads. */
import { expect, it } from 'vitest';
import { rerunTests } from '../../support/stages/rerun.ts';

/** Its files, one after the other. */
const suitesMs = 1_800_000;
const suites = [
  'test/end-to-end/contract',
  'test/end-to-end/tenants',
  'test/end-to-end/signals.test.ts',
  'test/end-to-end/start.test.ts',
  'test/end-to-end/crash.test.ts',
  'test/end-to-end/canary.test.ts',
  'test/end-to-end/deadline.test.ts',
  'test/end-to-end/robustness/listener.test.ts',
  'test/end-to-end/robustness/aborted-requests.test.ts',
  'test/end-to-end/robustness/cut-sockets.test.ts',
];

it.runIf(process.env['TEST_NIGHTLY'] === '1')('holds', { timeout: suitesMs }, async () => {
  const environment = { TEST_API_THREADS: '3', TEST_NIGHTLY: '' };
  const { code, output } = await rerunTests(suites, { environment });
  expect(code, output).toBe(0);
  expect(output).toMatch(/Tests +\d{2,} passed/);
});
