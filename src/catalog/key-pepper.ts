/**
 * The secret that API keys are hashed with: 32 random bytes in `key-pepper`, beside the databases and
 * not in them, so that a copy of the catalog alone tells nothing about keys. Without it no key of the
 * catalog is valid any more: back it up with the databases.
 */
import { randomBytes } from 'node:crypto';
import { link, open, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { syncDirectory } from './sync-directory.ts';

const fileName = 'key-pepper';
const pepperBytes = 32;

/** Reads the pepper of a data directory, or creates it. Processes that start at once get the same one. */
export async function loadKeyPepper(directory: string): Promise<Uint8Array> {
  const file = path.join(directory, fileName);
  return (await readPepper(file)) ?? createPepper(directory, file);
}

async function createPepper(directory: string, file: string): Promise<Uint8Array> {
  const temporary = `${file}.${randomBytes(8).toString('hex')}.new`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(randomBytes(pepperBytes));
      await handle.sync();
    } finally {
      await handle.close();
    }
    // `link` fails where `rename` would replace: whoever comes second takes the first one's.
    await link(temporary, file).catch(ignoreCode('EEXIST'));
  } finally {
    await rm(temporary, { force: true });
  }
  await syncDirectory(directory);
  const pepper = await readPepper(file);
  if (pepper === undefined) throw new Error(`${file} vanished while it was made`);
  return pepper;
}

async function readPepper(file: string): Promise<Uint8Array | undefined> {
  const pepper = await readFile(file).catch(ignoreCode('ENOENT'));
  if (pepper === undefined) return undefined;
  if (pepper.length !== pepperBytes) throw new Error(`${file} is damaged: it must hold ${pepperBytes} bytes`);
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) throw new Error(`${file} must be readable by its owner only (chmod 600)`);
  return pepper;
}

function ignoreCode(code: string): (error: unknown) => undefined {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === code) return;
    throw error;
  };
}
