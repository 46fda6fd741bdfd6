/** The memory of the engine and of local encoders. Encoders take 60% of the memory at most, the engine a third. */
import { totalmem } from 'node:os';
import type { Config } from './config.ts';

const encoderShare = 0.6;
const engineShare = 1 / 3;

export function engineMemoryBytes(config: Pick<Config, 'MAXSIMD_MEMORY_MIB'>): number {
  return config.MAXSIMD_MEMORY_MIB * 2 ** 20 || Math.floor(availableBytes() * engineShare);
}

/** Bound of one encoder process while one model is loaded. */
export function encoderMemoryBytes(
  config: Pick<Config, 'MAXSIMD_ENCODER_MEMORY_MIB'>,
  processes: number,
): number {
  return config.MAXSIMD_ENCODER_MEMORY_MIB * 2 ** 20 || (availableBytes() * encoderShare) / processes;
}

/** `constrainedMemory` is undefined, or more than the machine has, if nothing constrains the process. */
function availableBytes(): number {
  return Math.min(process.constrainedMemory() || Infinity, totalmem());
}
