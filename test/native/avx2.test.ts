/** The addon on a CPU without AVX-512, AVX-VNNI and AMX: no path executes their instructions, and answers are the same. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { runOnAvx2Cpu, whyNoAvx2Cpu } from '../support/machine/avx2-cpu.ts';

let whyNot: string | undefined;
beforeAll(() => {
  whyNot = whyNoAvx2Cpu();
}, 900_000);

it('a CPU with no more than AVX2 answers as this one does, by every plan', (context) => {
  context.skip(whyNot !== undefined, whyNot);
  const program = path.join(import.meta.dirname, 'answers-process.ts');
  const here = JSON.parse(execFileSync(process.execPath, [program], { encoding: 'utf8' })) as object;
  const there = JSON.parse(runOnAvx2Cpu(process.execPath, [program])) as object;
  expect(there).toEqual({ ...here, kernel: 'avx2' });
});
