/**
 * Runs the addon's stand-alone tests under a sanitizer: every suite under `address` (with undefined behaviour and leaks),
 * the concurrent one under `thread`. `node test/native/sanitizers.ts address|thread`; `MAXSIMD_TEST_SEED` repeats a
 * run. Exits with 1 on any finding.
 */
import path from 'node:path';
import { addressSanitizers, buildNativeTests, run } from './native-build.ts';

const runs: Readonly<Record<string, { readonly sanitizers: string; readonly suites: readonly string[] }>> = {
  address: { sanitizers: addressSanitizers, suites: [] }, // all
  thread: { sanitizers: 'thread', suites: ['concurrency', 'memory'] },
};

const [name = ''] = process.argv.slice(2);
const chosen = runs[name];
if (chosen === undefined)
  throw new Error(`no sanitizer is called ${JSON.stringify(name)}: address or thread`);
run(path.join(buildNativeTests(name, chosen.sanitizers), 'maxsimd_test'), chosen.suites);
