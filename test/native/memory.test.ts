import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';

interface Note {
  readonly step: string;
  readonly mostBytes: number;
  readonly takenBytes: number;
  readonly codesBytes: number;
  readonly heldBytes: number;
  /** By the system: whole pages of each file. */
  readonly lockedBytes: number;
  readonly refused?: string;
  readonly opened?: string;
  readonly appended?: string;
  readonly plans?: readonly string[];
}

it.runIf(process.platform === 'linux')('an engine keeps to its bound, and says what it does without', () => {
  const script = path.join(import.meta.dirname, 'memory-process.ts');
  const { stdout, stderr, status } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  const notes = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Note);
  const at = (step: string): Note => notes.find((note) => note.step === step)!;
  for (const { step, mostBytes, takenBytes, heldBytes, lockedBytes } of notes) {
    expect(takenBytes + heldBytes, step).toBeLessThanOrEqual(mostBytes);
    expect(Math.abs(lockedBytes - heldBytes), step).toBeLessThanOrEqual(3 * 4096);
  }
  expect(at('no room to build')).toMatchObject({ refused: 'no_memory', plans: ['exact, the best'] });
  const built = at('built');
  expect(built.plans).not.toContain('exact, the best');
  expect(built.codesBytes).toBeGreaterThan(0);
  // Some containers allow little to be locked, or nothing.
  if (built.heldBytes === built.codesBytes) {
    expect(at('half of the codes').heldBytes).toBeGreaterThan(0);
    expect(at('room again').heldBytes).toBe(at('room again').codesBytes);
  }
  expect(at('half of the codes').heldBytes).toBeLessThan(built.codesBytes);
  expect(at('half of the codes').plans).toEqual(built.plans);
  expect(at('no room')).toMatchObject({ opened: 'no_memory', appended: 'no_memory', heldBytes: 0 });
  expect(at('no room').plans).toEqual(built.plans);
  expect(at('room again').opened).toBe('done');
  expect(at('closed')).toMatchObject({ takenBytes: 0, codesBytes: 0, heldBytes: 0, lockedBytes: 0 });
});
