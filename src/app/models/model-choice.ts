/** The installed model that `MAXSIMD_MODEL` names. */
import { ConfigError, modelFoldersOf, type Config } from '../config.ts';
import { findInstalled, type InstalledModel, installedModels } from '../../encoder/model/installed-models.ts';
import type { ModelChoice } from '../../service/indexes/served-models.ts';

/** Its name and, if given, its version. */
export function choiceOf(config: Config): ModelChoice {
  const [name = '', version] = config.MAXSIMD_MODEL.split('/');
  return version === undefined ? { name } : { name, version };
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
    `MAXSIMD_MODEL: there is no model ${config.MAXSIMD_MODEL} in ${folders.join(' or ')}${hint}`,
  );
}

export async function modelDirectoryOf(config: Config): Promise<string> {
  return (await chosenModel(config)).directory;
}
