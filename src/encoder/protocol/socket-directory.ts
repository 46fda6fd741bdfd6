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
import { ServiceError } from '../../errors.ts';

const commonPrefix = 'maxsimd-encoder-';
const longestSocket = '999.sock';
/** The system keeps the path of a socket in 108 bytes on Linux, and in 104 elsewhere. The last one is zero. */
const pathBytesMax = process.platform === 'linux' ? 107 : 103;

/**
 * Makes a directory with mode 0700. Removes those of earlier supervisors of this name, which must all have ended. Rejects with
 * `service_unavailable` where the temporary directory cannot hold sockets.
 */
export async function makeSocketDirectory(name: string | undefined): Promise<string> {
  const prefix = name === undefined ? commonPrefix : `${commonPrefix}${name}-`;
  const bytesOver = Buffer.byteLength(path.join(tmpdir(), `${prefix}XXXXXX`, longestSocket)) - pathBytesMax;
  if (bytesOver > 0) throw unusable(`is ${bytesOver} bytes too long for the paths of sockets`);
  try {
    if (name !== undefined) await removeEarlier(prefix);
    return await mkdtemp(path.join(tmpdir(), prefix));
  } catch (error) {
    throw unusable(`cannot hold sockets (${(error as NodeJS.ErrnoException).code})`, error);
  }
}

function unusable(reason: string, cause?: unknown): ServiceError {
  const message = `the temporary directory ${tmpdir()} ${reason}; TMPDIR names another`;
  return new ServiceError('service_unavailable', message, { cause });
}

async function removeEarlier(prefix: string): Promise<void> {
  for (const entry of await readdir(tmpdir())) {
    if (!entry.startsWith(prefix)) continue;
    const left = path.join(tmpdir(), entry);
    // An encoder that ends may have removed it meanwhile. And another user may have made a directory of this name.
    const found = await lstat(left).catch(() => undefined);
    if (found?.uid === process.getuid?.()) await rm(left, { recursive: true, force: true });
  }
}

/** Removes the directory of this address, if `makeSocketDirectory` made it. */
export function removeSocketDirectory(address: string): void {
  const directory = path.dirname(address.replace(/^unix:/, ''));
  if (path.basename(directory).startsWith(commonPrefix)) rmSync(directory, { recursive: true, force: true });
}
