/**
 * Blobs as files of one directory, with mode 0700. A directory is synced after every entry that appears or goes. A file
 * whose entry is not durable is lost with the power, however often its bytes were synced.
 */
import { rmdirSync } from 'node:fs';
import { access, open, readdir, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectories } from '../../process/make-directories.ts';
import { hasCode } from '../../system-errors.ts';
import type { BlobStore } from './blob-store.ts';
import { freeBytesOf, makeDirectory, pathOf } from './local-files.ts';

/** Opens the store, making `root` durable if it does not exist. */
export async function openLocalBlobStore(root: string): Promise<BlobStore> {
  const directory = path.resolve(root);
  makeDirectories(directory, 0o700);
  await syncDirectory(path.dirname(directory));
  return new LocalBlobStore(directory);
}

class LocalBlobStore implements BlobStore {
  readonly #root: string;
  /** Blobs that `create` has named and that are not yet sealed or removed. Their directory must stay. */
  readonly #active = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  async create(name: string): Promise<string> {
    const file = pathOf(this.#root, name);
    this.#active.add(name);
    try {
      await makeDirectory(path.dirname(file));
      await syncDirectory(this.#root);
    } catch (error) {
      this.#active.delete(name);
      throw error;
    }
    return file;
  }

  async seal(name: string): Promise<void> {
    const file = await this.open(name);
    await syncDirectory(path.dirname(file));
    this.#active.delete(name);
  }

  async open(name: string): Promise<string> {
    const file = pathOf(this.#root, name);
    await access(file);
    return file;
  }

  async list(prefix: string): Promise<readonly { readonly name: string; readonly bytes: number }[]> {
    const [first = ''] = prefix.split('/', 1);
    const directories = prefix.includes('/') ? [first] : await entriesOf(this.#root);
    const blobs: { name: string; bytes: number }[] = [];
    for (const directory of directories) {
      for (const file of await entriesOf(path.join(this.#root, directory))) {
        const name = `${directory}/${file}`;
        if (!name.startsWith(prefix)) continue;
        const found = await ifExists(stat(path.join(this.#root, name)));
        if (found?.isFile() === true) blobs.push({ name, bytes: found.size });
      }
    }
    return blobs.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async remove(name: string): Promise<void> {
    const file = pathOf(this.#root, name);
    const directory = path.dirname(file);
    await ifExists(unlink(file));
    this.#active.delete(name);
    await ifExists(syncDirectory(directory));
    // No `await` stands between the check and the removal: a `create` that starts later makes the directory again.
    const prefix = `${path.basename(directory)}/`;
    if (![...this.#active].some((other) => other.startsWith(prefix)) && removeEmptyDirectory(directory)) {
      await syncDirectory(this.#root);
    }
  }

  freeBytes(): Promise<number> {
    return freeBytesOf(this.#root);
  }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Names inside a directory. None if it does not exist or is a file. */
async function entriesOf(directory: string): Promise<readonly string[]> {
  return (await ifExists(readdir(directory))) ?? [];
}

async function ifExists<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Returns whether there was an empty directory, which is gone now. */
function removeEmptyDirectory(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) return false;
    throw error;
  }
}
