/** Which model directory the configuration means. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError, type Config } from './config.ts';
import type { ModelChoice } from '../service/indexes/served-models.ts';

/** `MAXSIMD_MODEL` as name and, if given, version. */
export function choiceOf(config: Config): ModelChoice {
  const [name = '', version] = config.MAXSIMD_MODEL.split('/');
  return version === undefined ? { name } : { name, version };
}

/** The directory of the chosen model; without a version, of its newest. */
export async function modelDirectoryOf(config: Config): Promise<string> {
  const models =
    config.MAXSIMD_MODELS_DIR === ''
      ? path.resolve(import.meta.dirname, '../../models')
      : path.resolve(config.MAXSIMD_MODELS_DIR);
  const { name, version } = choiceOf(config);
  const versions = await versionsOf(path.join(models, name));
  const chosen = version ?? versions.at(-1);
  if (chosen === undefined || !versions.includes(chosen)) {
    throw new ConfigError(`MAXSIMD_MODEL: there is no model ${config.MAXSIMD_MODEL} in ${models}`);
  }
  return path.join(models, name, chosen);
}

/** Versions of a model, oldest first: `2` before `10`. */
async function versionsOf(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const order = new Intl.Collator('en', { numeric: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted((a, b) => order.compare(a, b));
}
