/** Files by name below a root directory. A name is `<index id>/<file>`: two plain components, which never leave the root. */
import { mkdir, statfs } from 'node:fs/promises';
import path from 'node:path';
import { assertInvariant } from '../../errors.ts';
import { hasCode } from '../../system-errors.ts';

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

export function pathOf(root: string, name: string): string {
  assertInvariant(namePattern.test(name), `file name ${JSON.stringify(name)}`);
  return path.join(root, name);
}

export async function freeBytesOf(root: string): Promise<number> {
  const found = await statfs(root);
  return found.bavail * found.bsize;
}

/**
 * Makes a directory whose parent exists. One that is there stays. Node's `recursive` is not used: with it every failure becomes
 * `ENOENT`, and a failing disk would look like a defect of this program.
 */
export async function makeDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}
