/**
 * The secret that API keys are hashed with: 32 random bytes in `key-pepper`, beside the databases and
 * not in them, so that a copy of the catalog alone tells nothing about keys. Without it no key of the
 * catalog is valid any more: back it up with the databases. The catalog holds a fingerprint of it, so that a
 * lost or foreign one is noticed.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { assertInvariant } from '../errors.ts';
import { syncDirectory } from './sync-directory.ts';

export const keyPepperFile = 'key-pepper';
const pepperBytes = 32;

/** `undefined` when there is none; a word on what is wrong with one that cannot be used. */
export async function readKeyPepper(directory: string): Promise<Uint8Array | string | undefined> {
  const file = path.join(directory, keyPepperFile);
  const pepper = await readFile(file).catch(ignoreCode('ENOENT'));
  if (pepper === undefined) return undefined;
  if (pepper.length !== pepperBytes) return `is damaged: it must hold ${pepperBytes} bytes`;
  const { mode } = await stat(file);
  return (mode & 0o077) === 0 ? pepper : 'must be readable by its owner only (chmod 600)';
}

/** Makes one if there is none. Processes that start at once get the same. */
export async function createKeyPepper(directory: string): Promise<Uint8Array> {
  const file = path.join(directory, keyPepperFile);
  // `link` fails where `rename` would replace: whoever comes second takes the first one's.
  await writePepper(file, (written) => link(written, file).catch(ignoreCode('EEXIST')));
  const pepper = await readKeyPepper(directory);
  assertInvariant(pepper instanceof Uint8Array, `${file} was made`);
  return pepper;
}

/** Puts a new one in the place of any other, once `adopt` has made the catalog's own of it. */
export async function replaceKeyPepper(
  directory: string,
  adopt: (pepper: Uint8Array) => Promise<void>,
): Promise<void> {
  const file = path.join(directory, keyPepperFile);
  await writePepper(file, async (written, pepper) => {
    await adopt(pepper);
    await rename(written, file);
  });
}

/** 32 bytes that tell peppers apart, and nothing about them. */
export function fingerprintOf(pepper: Uint8Array): Uint8Array {
  return createHmac('sha256', pepper).update('fingerprint of the key pepper').digest();
}

/** Writes a new pepper beside its place, durably; what `place` does with it is durable afterwards. */
async function writePepper(
  file: string,
  place: (written: string, pepper: Uint8Array) => Promise<void>,
): Promise<void> {
  const written = `${file}.${randomBytes(8).toString('hex')}.new`;
  const pepper = randomBytes(pepperBytes);
  try {
    const handle = await open(written, 'wx', 0o600);
    try {
      await handle.writeFile(pepper);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await place(written, pepper);
  } finally {
    await rm(written, { force: true });
  }
  await syncDirectory(path.dirname(file));
}

function ignoreCode(code: string): (error: unknown) => undefined {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === code) return;
    throw error;
  };
}
