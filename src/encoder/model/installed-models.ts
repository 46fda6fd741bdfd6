/**
 * Which model versions are installed: the directories `<name>/<version>/` of some folders. A name and version that
 * two folders have is taken from the first. A flat export, `<name>/` with the files of a model in it, is another matter: it
 * has no version yet, so `maxsimd models add` must install it.
 */
import { type Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

export interface InstalledModel {
  readonly name: string;
  readonly version: string;
  readonly directory: string;
}

export interface InstalledModels {
  /** By name, and the versions of a name oldest first: `2` before `10`. */
  readonly models: readonly InstalledModel[];
  /** Directories of exports that are not installed. */
  readonly flat: readonly string[];
}

/** Files that make a directory one of a model, ours or an export. */
const telling = new Set([
  'manifest.json',
  'onnx_config.json',
  'config_sentence_transformers.json',
  'model.onnx',
  'model_int8.onnx',
]);

const order = new Intl.Collator('en', { numeric: true });

/** Looks at the folders as they are now; one that does not exist is empty. */
export async function installedModels(folders: readonly string[]): Promise<InstalledModels> {
  const models = new Map<string, InstalledModel>();
  const flat: string[] = [];
  for (const folder of folders) {
    for (const name of await directoriesIn(folder)) {
      const parent = path.join(folder, name);
      if (await isModel(parent)) {
        flat.push(parent);
        continue;
      }
      for (const version of await directoriesIn(parent)) {
        const directory = path.join(parent, version);
        if (!(await isModel(directory))) continue;
        const model = { ...(await namesOf(directory, { name, version })), directory };
        const key = `${model.name}/${model.version}`;
        if (!models.has(key)) models.set(key, model);
      }
    }
  }
  return {
    models: [...models.values()].toSorted(
      (a, b) => order.compare(a.name, b.name) || order.compare(a.version, b.version),
    ),
    flat,
  };
}

/** The model in this version, or in its newest. */
export function findInstalled(
  models: readonly InstalledModel[],
  wanted: { readonly name: string; readonly version?: string | undefined },
): InstalledModel | undefined {
  return models.findLast(
    ({ name, version }) => name === wanted.name && (wanted.version ?? version) === version,
  );
}

/** The manifest has the last word, as when the model is loaded. A manifest that cannot be read is an error then. */
async function namesOf(
  directory: string,
  fromPath: { readonly name: string; readonly version: string },
): Promise<{ readonly name: string; readonly version: string }> {
  try {
    const text = await readFile(path.join(directory, 'manifest.json'), 'utf8');
    const { name, version } = JSON.parse(text) as { readonly name?: unknown; readonly version?: unknown };
    return {
      name: typeof name === 'string' ? name : fromPath.name,
      version:
        typeof version === 'string' || typeof version === 'number' ? String(version) : fromPath.version,
    };
  } catch {
    return fromPath;
  }
}

async function isModel(directory: string): Promise<boolean> {
  const entries = await entriesOf(directory);
  return entries.some((entry) => !entry.isDirectory() && telling.has(entry.name));
}

/** Hidden ones are no models: one that is being installed is hidden. */
async function directoriesIn(directory: string): Promise<readonly string[]> {
  const entries = await entriesOf(directory);
  return entries
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .toSorted();
}

async function entriesOf(directory: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A link may lead to a file.
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}
