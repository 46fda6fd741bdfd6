/**
 * Emulates a 64-bit x86 CPU that has AVX2 and no later vector instructions. Any later instruction ends the process, even if the
 * machine has it.
 */
import { spawnSync } from 'node:child_process';
import { installMissingTools } from '../../../deploy/local/debian-packages.ts';

const emulator = 'qemu-x86_64';

/** The reason why the emulator cannot run here; `undefined` = it can. It is installed if it is missing. */
export function whyNoAvx2Cpu(): string | undefined {
  if (process.arch !== 'x64') return 'the programs are not of x86';
  return installMissingTools({ [emulator]: 'qemu-user' });
}

/** Runs a program and returns its output. Throws if it fails. */
export function runOnAvx2Cpu(program: string, args: readonly string[]): string {
  const { status, signal, stdout, stderr } = spawnSync(emulator, ['-cpu', 'Haswell', program, ...args], {
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`${program} under ${emulator}: ${status ?? signal}\n${stdout}\n${stderr}`);
  return stdout;
}
