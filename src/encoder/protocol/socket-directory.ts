/**
 * The private directory of the encoders' sockets. It lies in the temporary directory, where paths are short enough for sockets,
 * and where a full or read-only data directory does not matter. Each supervisor makes a new one, because encoders of a killed
 * supervisor may still use the old one.
 *
 * The supervisor removes its directory. If the supervisor is gone, one of its encoders does it. If both were killed, the next
 * supervisor of the same name does it.
 */
import { rmSync } from 'node:fs';
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

const commonPrefix = 'maxsimd-encoder-';

/** Makes a directory with mode 0700. Removes those of earlier supervisors of this name, which must all have ended. */
export async function makeSocketDirectory(name: string | undefined): Promise<string> {
  if (name === undefined) return mkdtemp(path.join(tmpdir(), commonPrefix));
  const prefix = `${commonPrefix}${name}-`;
  for (const entry of await readdir(tmpdir())) {
    if (!entry.startsWith(prefix)) continue;
    const left = path.join(tmpdir(), entry);
    // An encoder that ends may have removed it meanwhile. And another user may have made a directory of this name.
    const found = await lstat(left).catch(() => undefined);
    if (found?.uid === process.getuid?.()) await rm(left, { recursive: true, force: true });
  }
  return mkdtemp(path.join(tmpdir(), prefix));
}

/** Removes the directory of this address, if `makeSocketDirectory` made it. */
export function removeSocketDirectory(address: string): void {
  const directory = path.dirname(address.replace(/^unix:/, ''));
  if (path.basename(directory).startsWith(commonPrefix)) rmSync(directory, { recursive: true, force: true });
}
