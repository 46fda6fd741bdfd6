import { open } from 'node:fs/promises';

/** Makes the names in a directory durable: a new file's own fsync does not promise that (POSIX fsync). */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
