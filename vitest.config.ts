import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The parts of a benchmark are tested beside it; test/bench runs benchmarks as a user does.
    include: ['test/**/*.test.ts', 'bench/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    // Tests load ONNX Runtime too: it sends nothing to its makers.
    env: { ORT_DISABLE_TELEMETRY: '1' },
  },
});
