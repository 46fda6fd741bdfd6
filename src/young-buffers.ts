import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 collect short-lived buffers together with short-lived objects, at 32 MiB of buffers. V8 13.6 (Node 24) would wait
 * for 128 MiB. But at 64 MiB it collects the whole heap, which takes twice as long
 * (https://github.com/nodejs/node/issues/61967). This holds for the process and the threads that it starts later.
 */
export function collectYoungBuffers(): void {
  setFlagsFromString('--scavenger-max-new-space-capacity-mb=8');
}
