/** `maxsimd models list|verify`: the installed models, and whether they are intact. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { installedModels } from '../../encoder/model/installed-models.ts';
import { openModelDirectory } from '../../encoder/model/model-directory.ts';
import { furtherModels } from '../../process/installation.ts';
import { CommandFailure, messageOf } from '../failure.ts';
import { mebibytes, table, type CommandResult } from '../output.ts';

export async function listModels(folders: readonly string[]): Promise<CommandResult> {
  const { models: found, flat } = await installedModels(folders);
  const models = await Promise.all(
    found.map(async (model) => ({ ...model, bytes: await sizeOf(model.directory) })),
  );
  const available = furtherModels.filter((further) => !found.some(({ name }) => name === further));
  const hints = [
    ...flat.map((directory) => `not installed: ${directory} (maxsimd models add ${directory})`),
    ...available.map((name) => `not installed: ${name} (maxsimd models build ${name})`),
  ];
  return {
    document: { data: models, not_installed: flat, available },
    text: [
      table(
        ['model', 'version', 'MiB', 'directory'],
        models.map((model) => [model.name, model.version, mebibytes(model.bytes), model.directory]),
        ['MiB'],
      ),
      ...hints,
    ].join('\n'),
  };
}

/** Reads each model as the encoder does, and compares its files with the checksums of its manifest. */
export async function verifyModels(folders: readonly string[]): Promise<CommandResult> {
  const { models } = await installedModels(folders);
  if (models.length === 0)
    throw new CommandFailure('verification_failed', `there is no model in ${folders.join(' or ')}`);
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

async function sizeOf(directory: string): Promise<number> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const sizes = await Promise.all(
    entries.filter((entry) => entry.isFile()).map((entry) => stat(path.join(entry.parentPath, entry.name))),
  );
  return sizes.reduce((sum, { size }) => sum + size, 0);
}
