/** Finds the model of an index, and the model that a new index gets. */
import type { IndexRow } from '../../catalog/contract.ts';
import type { EncoderPool, EncoderModel } from '../../encoder/protocol/contract.ts';
import { invalid, unavailable } from '../../errors.ts';
import { defaultModelAlias, type CreateIndexRequest, type RequestContext } from '../contract.ts';

const retryAfterSeconds = 5;

/** The default model. `version` absent = the one that the encoders serve. */
export interface ModelChoice {
  readonly name: string;
  readonly version?: string;
}

/** The version that a model has for requests that name none, by default of the default model. */
export type ModelOfMoment = (name?: string) => ModelChoice;

/** Further names of models in re-rank requests, and the models that they stand for. */
export type ModelAliases = ReadonlyMap<string, string>;

/** How long the caller waits for an encoder that is about to come back. */
type Limits = Pick<RequestContext, 'deadlineMs' | 'signal'>;

type ModelReference = Pick<IndexRow, 'model' | 'modelVersion'>;

/** The model of an index, in exactly its version. Another version is never used in its place. */
export async function modelOfIndex(
  encoders: EncoderPool,
  { model: name, modelVersion: version }: ModelReference,
  limits: Limits,
): Promise<EncoderModel> {
  const model = await encoders.awaitModel({ name, version }, limits);
  if (model !== undefined) return model;
  const message = `model ${name} version ${version}, which this index has for ever, is not installed`;
  throw unavailable(message, new Error('no encoder here has this model version'), retryAfterSeconds);
}

/** The default model, which also encodes transient documents. */
export async function defaultModel(
  encoders: EncoderPool,
  modelOfMoment: ModelOfMoment,
  limits: Limits,
): Promise<EncoderModel> {
  const model = await awaitMoment(encoders, modelOfMoment, undefined, limits);
  if (model !== undefined) return model;
  throw unavailable('no encoder serves the default model at the moment', undefined, retryAfterSeconds);
}

/** The model that a request for a new index asks for, in the version that it names, or else in that of the moment. */
export async function chooseModel(
  encoders: EncoderPool,
  modelOfMoment: ModelOfMoment,
  request: Pick<CreateIndexRequest, 'model' | 'modelVersion'>,
  limits: Limits,
): Promise<EncoderModel> {
  const choice = modelOfMoment();
  const { model: name = choice.name, modelVersion } = request;
  if (name === choice.name && modelVersion === undefined)
    return defaultModel(encoders, modelOfMoment, limits);
  const model =
    modelVersion === undefined
      ? await awaitMoment(encoders, modelOfMoment, name, limits)
      : await encoders.awaitModel({ name, version: modelVersion }, limits);
  if (model !== undefined) return model;
  if (modelVersion !== undefined) {
    throw invalid('model_version', 'there is no such version of the model', 'unknown_model_version');
  }
  throw invalid('model', `no such model; the default is ${choice.name}`, 'unknown_model');
}

/**
 * The model that a re-rank request names: a model, an alias of one, or `default`. The message of an unknown name has all names,
 * because a client of another product sends the name of its own model.
 */
export async function modelOfRerank(
  { encoders, modelOfMoment, modelAliases }: RerankModels,
  name: string | undefined,
  limits: Limits,
): Promise<EncoderModel> {
  const meant = name === undefined ? defaultModelAlias : (modelAliases.get(name) ?? name);
  if (meant === defaultModelAlias) return defaultModel(encoders, modelOfMoment, limits);
  const model = await awaitMoment(encoders, modelOfMoment, meant, limits);
  if (model !== undefined) return model;
  const served = [defaultModelAlias, ...(await encoders.modelNames())];
  const aliases = [...modelAliases].filter(([, target]) => served.includes(target)).map(([alias]) => alias);
  const names = [...served, ...aliases];
  const message = `there is no such model; the names are ${names.join(', ')}`;
  throw invalid('model', message, 'unknown_model');
}

export interface RerankModels {
  readonly encoders: EncoderPool;
  readonly modelOfMoment: ModelOfMoment;
  readonly modelAliases: ModelAliases;
}

/** While no encoder is up, a model has no version. So the version is asked for again when there is one. */
async function awaitMoment(
  encoders: EncoderPool,
  modelOfMoment: ModelOfMoment,
  name: string | undefined,
  limits: Limits,
): Promise<EncoderModel | undefined> {
  const before = modelOfMoment(name);
  const model = await encoders.awaitModel(before, limits);
  if (before.version !== undefined || model === undefined) return model;
  return encoders.awaitModel(modelOfMoment(name), limits);
}
