/**
 * A CPU with AVX2 and no later vector instructions, for programs of 64-bit x86: under this emulator any other
 * vector instruction is illegal and ends the process, whatever the machine below has.
 */
import { spawnSync } from 'node:child_process';
import { installMissingTools } from '../../../deploy/local/debian-packages.ts';

const emulator = 'qemu-x86_64';

/** Why there is no such CPU here; `undefined` = there is. The emulator is installed where it is missing. */
export function whyNoAvx2Cpu(): string | undefined {
  if (process.arch !== 'x64') return 'the programs are not of x86';
  return installMissingTools({ [emulator]: 'qemu-user' });
}

/** What the program printed; its errors are thrown. */
export function runOnAvx2Cpu(program: string, args: readonly string[]): string {
  const { status, signal, stdout, stderr } = spawnSync(emulator, ['-cpu', 'Haswell', program, ...args], {
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`${program} under ${emulator}: ${status ?? signal}\n${stdout}\n${stderr}`);
  return stdout;
}
