/** The installed model that `MAXSIMD_MODEL` names. */
import { ConfigError, modelFoldersOf, type Config } from '../config.ts';
import { findInstalled, type InstalledModel, installedModels } from '../../encoder/model/installed-models.ts';
import type { ModelAliases, ModelChoice } from '../../service/indexes/served-models.ts';

/** Its name and, if given, its version. */
export function choiceOf(config: Config): ModelChoice {
  const [model = ''] = config.MAXSIMD_MODEL;
  const [name = '', version] = model.split('/');
  return version === undefined ? { name } : { name, version };
}

/** The further names that it gives to models, for re-rank requests. */
export function aliasesOf({ MAXSIMD_MODEL: [, ...aliases] }: Pick<Config, 'MAXSIMD_MODEL'>): ModelAliases {
  return new Map(
    aliases.map((alias) => {
      const [name = '', model = ''] = alias.split('=');
      return [name.trim(), model.trim()];
    }),
  );
}

/** Without a version, the newest. `undefined` if it is not installed, as where encoders run elsewhere. */
export async function newestInstalled(config: Config): Promise<InstalledModel | undefined> {
  const { models } = await installedModels(modelFoldersOf(config));
  return findInstalled(models, choiceOf(config));
}

/** The same. Rejects with a `ConfigError` if it is not installed. */
export async function chosenModel(config: Config): Promise<InstalledModel> {
  const chosen = await newestInstalled(config);
  if (chosen !== undefined) return chosen;
  const folders = modelFoldersOf(config);
  const { flat } = await installedModels(folders);
  const hint = flat.length === 0 ? '' : `; not installed: ${flat.join(', ')} (run maxsimd models add)`;
  throw new ConfigError(
    `MAXSIMD_MODEL: there is no model ${config.MAXSIMD_MODEL[0]} in ${folders.join(' or ')}${hint}`,
  );
}

export async function modelDirectoryOf(config: Config): Promise<string> {
  return (await chosenModel(config)).directory;
}
