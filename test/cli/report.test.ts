/** A failure of the operating system, as the command line reports it. */
import { mkdir, readFile, stat } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { reportFailure } from '../../src/cli/report.ts';

it.each([
  ['a file that is missing', () => stat('/nowhere/a.tar'), '/nowhere/a.tar does not exist'],
  ['a folder that is missing', () => mkdir('/nowhere/a.tar'), 'the folder of /nowhere/a.tar does not exist'],
  [
    'a folder in place of a file',
    () => readFile(import.meta.dirname),
    'EISDIR: illegal operation on a directory, read',
  ],
] as const)('%s has a line in words', async (_what, act, words) => {
  let stderr = '';
  const streams = { stdout: { write: () => true }, stderr: { write: (text: string) => (stderr += text) } };
  await act().then(
    () => expect.unreachable(),
    (error: unknown) => reportFailure(error, false, streams),
  );
  expect(stderr).toBe(`maxsimd: ${words}\n`);
});
