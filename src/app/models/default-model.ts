/**
 * The model that new indexes get, and texts that are scored without an index. If neither `MAXSIMD_MODEL` nor the request names a
 * version, it is the newest one that the encoders of this process and every other node serve. So a node of the release before meets
 * no index that it cannot search.
 */
import { compareVersions, type InstalledModel } from '../../encoder/model/installed-models.ts';
import type { Logger } from '../../observation/logging.ts';
import type { ModelChoice } from '../../service/indexes/served-models.ts';

export type ModelReference = Pick<InstalledModel, 'name' | 'version'>;

export interface DefaultModelOptions {
  readonly choice: ModelChoice;
  /** The models that this process serves; empty while no encoder is up. */
  readonly own: () => readonly ModelReference[];
  /** The models that each other live node serves. */
  readonly others: () => readonly (readonly ModelReference[])[];
  /** The newest version that is installed here. Encoders elsewhere may lack it. */
  readonly installed: string | undefined;
  readonly logger: Logger;
}

/** Returns the version of the moment of a model, by default of the default one. Each change of the latter is logged. */
export function followDefaultModel(options: DefaultModelOptions): (name?: string) => ModelChoice {
  const { choice, own, others, installed, logger } = options;
  let last: string | undefined;
  return (name = choice.name) => {
    if (name === choice.name && choice.version !== undefined) return choice;
    // A version that was installed a moment ago counts, if nobody else must serve it.
    if (name !== choice.name && others().length === 0) return { name };
    const version = agreedVersion(name, own(), others());
    if (version === undefined) return { name };
    if (name !== choice.name) return { name, version };
    if (version !== last) {
      const fields = { model: name, model_version: version, installed };
      if (installed !== undefined && compareVersions(version, installed) < 0)
        logger.warn(
          fields,
          'new indexes get an older version of the default model: not all encoders and nodes serve the newest',
        );
      else if (last !== undefined)
        logger.info(fields, 'new indexes get another version of the default model');
    }
    last = version;
    return { name, version };
  };
}

/** The newest version of `own` that all others serve; the newest of `own` if there is none; `undefined` if `own` is empty. */
function agreedVersion(
  name: string,
  own: readonly ModelReference[],
  others: readonly (readonly ModelReference[])[],
): string | undefined {
  const versions = own
    .filter((model) => model.name === name)
    .map(({ version }) => version)
    .toSorted(compareVersions);
  const isServed = (version: string): boolean =>
    others.every((models) => models.some((model) => model.name === name && model.version === version));
  return versions.findLast(isServed) ?? versions.at(-1);
}
