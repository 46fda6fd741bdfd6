/** Settings of this process, and of its threads. */
import { createRequire } from 'node:module';
import { getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { builtFile, hasBuiltFile } from './installation.ts';

const addonFile = 'maxsimd.node';

interface Addon {
  forbidCoreDumps(): void;
}

/**
 * A crash of this process leaves no core file, because that would hold texts. It lasts until the process runs another program, so
 * each program calls it. Only commands that call a service run without the addon, on platforms that have none.
 */
export function forbidCoreDumps(): void {
  if (hasBuiltFile(addonFile))
    (createRequire(import.meta.url)(builtFile(addonFile)) as Addon).forbidCoreDumps();
}

/**
 * Makes V8 collect short-lived buffers together with short-lived objects, at 32 MiB of buffers. V8 13.6 (Node 24) would wait
 * for 128 MiB. But at 64 MiB it collects the whole heap, which takes twice as long
 * (https://github.com/nodejs/node/issues/61967). This holds for the process and the threads that it starts later.
 */
export function collectYoungBuffers(): void {
  setFlagsFromString('--scavenger-max-new-space-capacity-mb=8');
}

/** Lowers the priority of this thread, and on some systems of its process. One that is as low already stays: only root may raise it. */
export function lowerPriority(niceness: number): void {
  if (getPriority() < niceness) setPriority(niceness);
}
