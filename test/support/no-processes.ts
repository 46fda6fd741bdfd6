/** Runs before each file of unit tests: what starts a process or listens on a port throws, and fails the file. */
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { afterAll } from 'vitest';

// An import of it would make every importer of this file no unit test.
const childProcess = process.getBuiltinModule('node:child_process');
const refused: string[] = [];

/** Takes note of what was refused so far, so that a test of the refusal passes. */
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

// Code that catches the error above hides it from its test, not from here.
afterAll(() => {
  if (refused.length > 0)
    throw new Error(`a unit test called ${refused.join(', ')}: see test/support/unit-tests.ts`);
});
