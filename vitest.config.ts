import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    // Tests load ONNX Runtime too: it sends nothing to its makers.
    env: { ORT_DISABLE_TELEMETRY: '1' },
  },
});
