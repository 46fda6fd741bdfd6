/** Arguments that no caller of ours gives: each call throws or rejects with a stated code, or answers; the process goes on. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';
import { announceRandom } from '../../support/running/random.ts';
import { temporaryDirectory } from '../sample.ts';

const calls = 1_500;

it('hostile calls end no process', () => {
  const { seed } = announceRandom('hostile calls');
  const script = path.join(import.meta.dirname, 'hostile-process.ts');
  using directory = temporaryDirectory();
  const args = [script, `${seed}`, `${calls}`, directory.path];
  const options = { encoding: 'utf8', cwd: directory.path } as const;
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, options);
  expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' });
  console.log('hostile calls:', stdout.trim());
  const { thrown, rejected, answered, residentMiB } = JSON.parse(stdout) as Record<string, number>;
  expect(thrown! + rejected! + answered!).toBe(calls);
  for (const outcome of [thrown, rejected, answered]) expect(outcome).toBeGreaterThan(calls / 100);
  expect(residentMiB).toBeLessThan(1024);
});
