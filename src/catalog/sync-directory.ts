import { open } from 'node:fs/promises';

/** Makes the names in a directory durable. The fsync of a new file does not promise that (POSIX fsync). */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
