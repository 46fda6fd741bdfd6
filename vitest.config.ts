import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { isNightly, rounds } from './test/rounds.ts';
import { unitTests } from './test/support/unit-tests.ts';

// The parts of a benchmark are tested beside it; test/release/bench runs benchmarks as a user does.
const all = ['test/**/*.test.ts', 'bench/**/*.test.ts'];
const unit = unitTests(import.meta.dirname).filter((file) => !file.startsWith('test/release/'));
const kernels = ['test/native/kernels/kernel-shapes.test.ts'];
// They pack, install and run what surrounds the code: `npm run test:release`.
const release = ['test/release/**/*.test.ts'];

/** Tests of whole processes take longest. They begin first, so that no worker is left with one at the end. */
class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's own method
    const sorted = await super.sort(files);
    const long = sorted.filter(({ moduleId }) => /\/test\/(end-to-end|release)\//.test(moduleId));
    return [...long, ...sorted.filter((file) => !long.includes(file))];
  }
}

export default defineConfig({
  test: {
    exclude: [...configDefaults.exclude, ...(isNightly() ? [] : ['test/nightly/**'])],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: unit,
          exclude: kernels,
          setupFiles: ['test/support/no-processes.ts'],
          // They start nothing that could outlive its file, so the files of a fork share its modules.
          isolate: false,
        },
      },
      {
        // Unit tests for which an addon is built first.
        extends: true,
        test: {
          name: 'kernels',
          include: kernels,
          setupFiles: ['test/support/no-processes.ts'],
          globalSetup: ['test/support/kernel-shapes-addon.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: all,
          exclude: [...unit, ...release],
          globalSetup: ['test/support/shared-services.ts'],
        },
      },
      {
        extends: true,
        test: { name: 'release', include: release, globalSetup: ['test/support/shared-services.ts'] },
      },
    ],
    // Tests that repeat for hours end by their count. A test has its own timeout only if the product promises that time.
    testTimeout: rounds({ short: 900_000, nightly: 4 * 3_600_000 }),
    hookTimeout: 900_000,
    // Long bounds cost nothing while all is well, and a busy machine fails nobody.
    expect: { poll: { timeout: 300_000 } },
    pool: 'forks',
    // One more than the cores of the smallest machine: many tests wait for processes and timers.
    maxWorkers: 3,
    sequence: { sequencer: ProcessesFirst },
    // Tests load ONNX Runtime too: it sends nothing to its makers.
    env: { ORT_DISABLE_TELEMETRY: '1' },
  },
});
