/**
 * Where the files of a model version lie. A version that differs from another one by its configuration alone has no copy of the
 * graph: `shares: 1` in its manifest says that files which it lists and does not have lie in `../1`.
 */
import { access } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';

/** The version that has the rest of the files: the name of a directory, and no path. */
export const sharesSchema = z
  .union([z.string(), z.number().int().transform(String)])
  .refine((version) => /^[\w.-]+$/.test(version) && !/^\.+$/.test(version), 'is not the name of a version');

/** The path of a file of the version in `directory`; a path in this directory if neither version has it. */
export async function fileOfModel(
  directory: string,
  shares: string | undefined,
  name: string,
): Promise<string> {
  const own = path.join(directory, name);
  if (shares === undefined || (await isThere(own))) return own;
  const shared = path.join(directory, '..', shares, name);
  return (await isThere(shared)) ? shared : own;
}

/** A file that cannot be reached counts as absent. To open it later gives the reason. */
async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
