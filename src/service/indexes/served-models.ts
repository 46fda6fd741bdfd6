/** Which model a new index gets, and which of the served models an index needs. */
import type { IndexRow } from '../../catalog/contract.ts';
import type { Encoder, EncoderModel } from '../../encoder/protocol/contract.ts';
import { ServiceError, invalid } from '../../errors.ts';
import type { RequestContext } from '../contract.ts';

const retryAfterSeconds = 5;

/** A model named in configuration: `version` absent = the one that the encoders serve. */
export interface ModelChoice {
  readonly name: string;
  readonly version?: string;
}

/** How long the caller wants to wait for an encoder that is about to come back. */
type Limits = Pick<RequestContext, 'deadlineMs' | 'signal'>;

type ModelReference = Pick<IndexRow, 'model' | 'modelVersion'>;

/** The model of an index in exactly its version; another version is never used in its place. */
export async function modelOfIndex(
  encoder: Encoder,
  index: ModelReference,
  limits: Limits,
): Promise<EncoderModel> {
  const wanted = { name: index.model, version: index.modelVersion };
  return (await encoder.awaitModel(wanted, limits)) ?? servedModelOfIndex(encoder, index);
}

/** The same without waiting. */
export function servedModelOfIndex(encoder: Encoder, index: ModelReference): EncoderModel {
  const model = encoder
    .models()
    .find(({ name, version }) => name === index.model && version === index.modelVersion);
  if (model !== undefined) return model;
  throw new ServiceError(
    'service_unavailable',
    'the model version of this index is not served at the moment',
    { retryAfterSeconds },
  );
}

/** The default model, which also encodes transient documents. */
export async function defaultModel(
  encoder: Encoder,
  choice: ModelChoice,
  limits: Limits,
): Promise<EncoderModel> {
  const model = await encoder.awaitModel(choice, limits);
  if (model !== undefined) return model;
  throw noEncoder();
}

/** The model a create-index request asks for. */
export async function chooseModel(
  encoder: Encoder,
  choice: ModelChoice,
  requested: string | undefined,
  limits: Limits,
): Promise<EncoderModel> {
  if (requested === undefined || requested === choice.name) return defaultModel(encoder, choice, limits);
  const model = await encoder.awaitModel({ name: requested }, limits);
  if (model !== undefined) return model;
  if (!encoder.ready() || encoder.hasServed(requested)) throw noEncoder();
  throw invalid('model', 'no such model', 'unknown_model');
}

function noEncoder(): ServiceError {
  return new ServiceError('service_unavailable', 'no encoder serves the model at the moment', {
    retryAfterSeconds,
  });
}
