/** `maxsimd models ...`: the model directories `<name>/<version>/` at hand, and whether they are intact. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../app/config.ts';
import { openModelDirectory } from '../encoder/model/model-directory.ts';
import { CommandFailure, messageOf } from './failure.ts';
import { table, type CommandResult } from './output.ts';

interface FoundModel {
  readonly name: string;
  readonly version: string;
  readonly directory: string;
}

/** The configured directory, or the one in the package. */
export function modelsDirectoryOf(config: Config): string {
  return config.MAXSIMD_MODELS_DIR === ''
    ? path.resolve(import.meta.dirname, '../../models')
    : path.resolve(config.MAXSIMD_MODELS_DIR);
}

export async function listModels(modelsDirectory: string): Promise<CommandResult> {
  const models = await Promise.all(
    (await findModels(modelsDirectory)).map(async (model) => ({
      ...model,
      bytes: await sizeOf(model.directory),
    })),
  );
  return {
    document: { data: models },
    text: table(
      ['model', 'version', 'MiB', 'directory'],
      models.map((model) => [model.name, model.version, (model.bytes / 2 ** 20).toFixed(1), model.directory]),
      ['MiB'],
    ),
  };
}

/** Reads each model as the encoder would and holds its files against the checksums of its manifest. */
export async function verifyModels(modelsDirectory: string): Promise<CommandResult> {
  const models = await findModels(modelsDirectory);
  if (models.length === 0) {
    throw new CommandFailure('verification_failed', `there is no model in ${modelsDirectory}`);
  }
  const verdicts = await Promise.all(
    models.map(async (model) => {
      try {
        const { manifest } = await openModelDirectory(model.directory);
        return { ...model, ok: true, files: Object.keys(manifest?.files ?? {}).length, problem: null };
      } catch (error) {
        return { ...model, ok: false, files: 0, problem: messageOf(error) };
      }
    }),
  );
  const damaged = verdicts.filter((verdict) => !verdict.ok).length;
  return {
    document: { data: verdicts, damaged },
    text: table(
      ['model', 'version', 'files checked', 'verdict'],
      verdicts.map((verdict) => [
        verdict.name,
        verdict.version,
        String(verdict.files),
        verdict.problem ??
          (verdict.files === 0 ? 'readable, but without a manifest to check it against' : 'ok'),
      ]),
      ['files checked'],
    ),
    failed: damaged > 0,
  };
}

/** Directories two levels down that hold a model's configuration. */
async function findModels(modelsDirectory: string): Promise<readonly FoundModel[]> {
  const found: FoundModel[] = [];
  for (const name of await directoriesIn(modelsDirectory)) {
    for (const version of await directoriesIn(path.join(modelsDirectory, name))) {
      const directory = path.join(modelsDirectory, name, version);
      const entries = await readdir(directory);
      if (entries.includes('onnx_config.json') || entries.includes('manifest.json')) {
        found.push({ name, version, directory });
      }
    }
  }
  return found;
}

async function directoriesIn(directory: string): Promise<readonly string[]> {
  let entries;
  try {
    entries = await readdir(directory, { withFileTypes: true });
  } catch (error) {
    throw new CommandFailure('input_error', `cannot read ${directory}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted();
}

async function sizeOf(directory: string): Promise<number> {
  const entries = await readdir(directory, { withFileTypes: true });
  const sizes = await Promise.all(
    entries.filter((entry) => entry.isFile()).map((entry) => stat(path.join(directory, entry.name))),
  );
  return sizes.reduce((sum, { size }) => sum + size, 0);
}
