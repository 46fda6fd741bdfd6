/** Which installed model the configuration means. */
import { ConfigError, modelFoldersOf, type Config } from './config.ts';
import { findInstalled, type InstalledModel, installedModels } from '../encoder/model/installed-models.ts';
import type { ModelChoice } from '../service/indexes/served-models.ts';

/** `MAXSIMD_MODEL` as name and, if given, version. */
export function choiceOf(config: Config): ModelChoice {
  const [name = '', version] = config.MAXSIMD_MODEL.split('/');
  return version === undefined ? { name } : { name, version };
}

/** The chosen model; without a version, its newest. */
export async function chosenModel(config: Config): Promise<InstalledModel> {
  const folders = modelFoldersOf(config);
  const { models, flat } = await installedModels(folders);
  const chosen = findInstalled(models, choiceOf(config));
  if (chosen !== undefined) return chosen;
  const hint = flat.length === 0 ? '' : `; not installed yet: ${flat.join(', ')} (maxsimd models add)`;
  throw new ConfigError(
    `MAXSIMD_MODEL: there is no model ${config.MAXSIMD_MODEL} in ${folders.join(' or ')}${hint}`,
  );
}

/** The directory of the chosen model. */
export async function modelDirectoryOf(config: Config): Promise<string> {
  return (await chosenModel(config)).directory;
}
