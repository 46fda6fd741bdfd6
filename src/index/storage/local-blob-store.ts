/**
 * Blobs as files of one directory, the only blob store of a single host. The directory and everything
 * below it is mode 0700; a directory is synced after every entry that appears or goes, because a file
 * whose entry is not durable is lost with the power however often its bytes were synced.
 */
import { rmdirSync } from 'node:fs';
import { access, mkdir, open, readdir, stat, statfs, unlink } from 'node:fs/promises';
import path from 'node:path';
import { assertInvariant } from '../../errors.ts';
import { hasCode } from '../../system-errors.ts';
import type { BlobStore } from './blob-store.ts';
import { makeDirectory } from './make-directory.ts';

/** `<index id>/<file>`: two plain components, so that no name leaves the root. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** Opens the store, making `root` durable if it does not exist. */
export async function openLocalBlobStore(root: string): Promise<BlobStore> {
  const directory = path.resolve(root);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await syncDirectory(path.dirname(directory));
  return new LocalBlobStore(directory);
}

class LocalBlobStore implements BlobStore {
  readonly #root: string;
  /** Blobs handed out by `create` and not yet sealed or removed: they keep their directory. */
  readonly #active = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  async create(name: string): Promise<string> {
    const file = this.#path(name);
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
    const file = this.#path(name);
    await access(file);
    await syncDirectory(path.dirname(file));
    this.#active.delete(name);
  }

  async open(name: string): Promise<string> {
    const file = this.#path(name);
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
    const file = this.#path(name);
    const directory = path.dirname(file);
    await ifExists(unlink(file));
    this.#active.delete(name);
    await ifExists(syncDirectory(directory));
    // Without a pause between the check and the call: a `create` that starts later makes the directory anew.
    const prefix = `${path.basename(directory)}/`;
    if (![...this.#active].some((other) => other.startsWith(prefix)) && removeEmptyDirectory(directory)) {
      await syncDirectory(this.#root);
    }
  }

  async freeBytes(): Promise<number> {
    const found = await statfs(this.#root);
    return found.bavail * found.bsize;
  }

  #path(name: string): string {
    assertInvariant(namePattern.test(name), `blob name ${JSON.stringify(name)}`);
    return path.join(this.#root, name);
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

/** Names inside a directory; none when it does not exist (or is a file). */
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

/** Whether the directory was there, empty, and is gone now. */
function removeEmptyDirectory(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) return false;
    throw error;
  }
}
