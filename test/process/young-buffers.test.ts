import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

const program = path.join(import.meta.dirname, 'young-buffers-process.ts');
const collections = (...args: readonly string[]): number =>
  Number(execFileSync(process.execPath, [program, ...args], { encoding: 'utf8' }));

// If both counts are alike, Node counts such buffers in another way, and src/process/process-tuning.ts can go.
test('buffers that die young seldom have the whole heap collected, and often without the setting', () => {
  expect(2 * collections('set')).toBeLessThan(collections());
});
