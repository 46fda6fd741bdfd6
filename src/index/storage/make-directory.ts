import { mkdir } from 'node:fs/promises';
import { hasCode } from '../../system-errors.ts';

/**
 * Makes a directory whose parent exists; one that is there stays. Not by Node's `recursive`: a call that fails
 * becomes `ENOENT` then, whatever the reason, and a failing disk looks like a defect of ours.
 */
export async function makeDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}
