/**
 * The private directory of the encoders' sockets. It lies in the temporary directory, where paths are short enough for
 * sockets and a full or read-only data directory does not matter. Each supervisor has a new one, for encoders of a killed
 * one may still be leaving. The supervisor removes it, or an encoder that finds its parent gone, or, where both were
 * killed, the next supervisor of the same name.
 */
import { rmSync } from 'node:fs';
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

const commonPrefix = 'maxsimd-encoder-';

/** Makes one, mode 0700, and removes those of earlier supervisors of this name, which must all have ended. */
export async function makeSocketDirectory(name: string | undefined): Promise<string> {
  if (name === undefined) return mkdtemp(path.join(tmpdir(), commonPrefix));
  const prefix = `${commonPrefix}${name}-`;
  for (const entry of await readdir(tmpdir())) {
    if (!entry.startsWith(prefix)) continue;
    const left = path.join(tmpdir(), entry);
    // An encoder that is leaving may just have removed it; and anybody may make a directory of this name here.
    const found = await lstat(left).catch(() => undefined);
    if (found?.uid === process.getuid?.()) await rm(left, { recursive: true, force: true });
  }
  return mkdtemp(path.join(tmpdir(), prefix));
}

/** Removes the directory that this address lies in, if it is one of ours. */
export function removeSocketDirectory(address: string): void {
  const directory = path.dirname(address.replace(/^unix:/, ''));
  if (path.basename(directory).startsWith(commonPrefix)) rmSync(directory, { recursive: true, force: true });
}
