/**
 * The secret that API keys are hashed with: 32 random bytes in the file `key-pepper`. It lies beside the databases and not in
 * them, so that a copy of the catalog alone says nothing about keys. Without it every key is invalid, so it must be backed up
 * with the databases. The catalog holds its fingerprint, by which a wrong pepper is noticed.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { assertInvariant } from '../errors.ts';
import { hasCode } from '../system-errors.ts';
import { syncDirectory } from './sync-directory.ts';

export const keyPepperFile = 'key-pepper';
const pepperBytes = 32;

/** `undefined` when there is no pepper. Text says why the pepper cannot be used. */
export async function readKeyPepper(directory: string): Promise<Uint8Array | string | undefined> {
  const file = path.join(directory, keyPepperFile);
  const pepper = await readFile(file).catch(ignoreCode('ENOENT'));
  if (pepper === undefined) return undefined;
  if (pepper.length !== pepperBytes) return `is damaged: it must hold ${pepperBytes} bytes`;
  const { mode } = await stat(file);
  return (mode & 0o077) === 0 ? pepper : 'must be readable by its owner only (chmod 600)';
}

/** Creates a pepper if there is none. Processes that start at the same time get the same one. */
export async function createKeyPepper(directory: string): Promise<Uint8Array> {
  const file = path.join(directory, keyPepperFile);
  // Unlike `rename`, `link` fails where a file exists. So the second process takes the pepper of the first.
  await writePepper(file, (written) => link(written, file).catch(ignoreCode('EEXIST')));
  const pepper = await readKeyPepper(directory);
  assertInvariant(pepper instanceof Uint8Array, `${file} exists`);
  return pepper;
}

/** Replaces the pepper by a new one, after `adopt` has stored its fingerprint in the catalog. */
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

/** 32 bytes that differ between peppers and reveal nothing of them. */
export function fingerprintOf(pepper: Uint8Array): Uint8Array {
  return createHmac('sha256', pepper).update('fingerprint of the key pepper').digest();
}

/** Writes a new pepper durably under a name of its own. `place` moves it, and the move is durable afterwards. */
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
    if (hasCode(error, code)) return;
    throw error;
  };
}
