import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];

// Runs after the tests of the file that imports this, so whatever they opened is closed by then.
afterAll(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true, force: true });
});

/** Makes a new directory. It is removed after the tests of the file. */
export async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-test-'));
  made.push(directory);
  return directory;
}
