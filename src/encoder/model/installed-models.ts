/**
 * Finds the installed model versions: the directories `<name>/<version>/` of several folders. If two folders have the same name
 * and version, the first one counts. A flat export, `<name>/` with the files of a model in it, has no version, so it must be
 * installed by `maxsimd models add`.
 */
import { type Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { hasCode } from '../../system-errors.ts';

export interface InstalledModel {
  readonly name: string;
  readonly version: string;
  readonly directory: string;
  /** The version whose graph it has (`shared-files.ts`): its own, if it has the file itself or that version is not beside it. */
  readonly graphVersion: string;
}

export interface InstalledModels {
  /** Sorted by name, and then by version. */
  readonly models: readonly InstalledModel[];
  /** Directories of exports that are not installed. */
  readonly flat: readonly string[];
}

/** A directory with one of these files is a model or an export. */
const telling = new Set([
  'manifest.json',
  'onnx_config.json',
  'config_sentence_transformers.json',
  'model.onnx',
  'model_int8.onnx',
]);

const order = new Intl.Collator('en', { numeric: true });

/** As numbers: `2` comes before `10`. */
export const compareVersions = (a: string, b: string): number => order.compare(a, b);

/** Reads the folders. A folder that does not exist counts as empty. */
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
      (a, b) => order.compare(a.name, b.name) || compareVersions(a.version, b.version),
    ),
    flat,
  };
}

/** The model in this version, or in the newest if no version is wanted. */
export function findInstalled(
  models: readonly InstalledModel[],
  wanted: { readonly name: string; readonly version?: string | undefined },
): InstalledModel | undefined {
  return models.findLast(
    ({ name, version }) => name === wanted.name && (wanted.version ?? version) === version,
  );
}

/** The versions that one session of the runtime serves, the given one included: those with the same graph. */
export function withSameGraph(
  models: readonly InstalledModel[],
  { name, graphVersion }: InstalledModel,
): readonly InstalledModel[] {
  return models.filter((model) => model.name === name && model.graphVersion === graphVersion);
}

type Names = Omit<InstalledModel, 'directory'>;

/** Name and version of the manifest, which count when the model is loaded too. A broken manifest is reported only then. */
async function namesOf(
  directory: string,
  fromPath: { readonly name: string; readonly version: string },
): Promise<Names> {
  try {
    const text = await readFile(path.join(directory, 'manifest.json'), 'utf8');
    const manifest = JSON.parse(text) as Partial<Record<'name' | 'version' | 'shares', unknown>>;
    const version = versionIn(manifest.version) ?? fromPath.version;
    return {
      name: typeof manifest.name === 'string' ? manifest.name : fromPath.name,
      version,
      graphVersion: (await sharedVersion(directory, versionIn(manifest.shares))) ?? version,
    };
  } catch {
    return { ...fromPath, graphVersion: fromPath.version };
  }
}

async function sharedVersion(directory: string, shares: string | undefined): Promise<string | undefined> {
  if (shares === undefined || (await hasGraph(directory))) return undefined;
  return (await hasGraph(path.join(directory, '..', shares))) ? shares : undefined;
}

function versionIn(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

async function isModel(directory: string): Promise<boolean> {
  const entries = await entriesOf(directory);
  return entries.some((entry) => !entry.isDirectory() && telling.has(entry.name));
}

async function hasGraph(directory: string): Promise<boolean> {
  const entries = await entriesOf(directory);
  return entries.some(({ name }) => name === 'model.onnx');
}

/** Without hidden directories: a model is hidden while it is being installed. */
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
    // ENOTDIR: a link may lead to a file.
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
