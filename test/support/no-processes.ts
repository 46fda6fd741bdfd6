/** Is loaded before each file of unit tests. Code that starts a process or listens on a port throws, and its file fails. */
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { afterAll } from 'vitest';

// `import` is avoided, because a file that imports `node:child_process` counts as no unit test, and so do its importers.
const childProcess = process.getBuiltinModule('node:child_process');
const refused: string[] = [];

/** Returns and forgets what was refused so far. A test of the refusal calls it, so that it passes. */
export function takeRefused(): readonly string[] {
  return refused.splice(0);
}

function refuse(owner: object, name: string): void {
  Object.defineProperty(owner, name, {
    value: () => {
      refused.push(name);
      throw new Error(`a unit test starts no process and listens on no port, but this one called ${name}()`);
    },
  });
}

for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'])
  refuse(childProcess, name);
refuse(net.Server.prototype, 'listen');
syncBuiltinESMExports();

// Code may catch the error above, so that its test passes. The file fails here all the same.
afterAll(() => {
  if (refused.length > 0)
    throw new Error(`a unit test called ${refused.join(', ')}: see test/support/unit-tests.ts`);
});
