/** Which model a new index gets, and which of the served models an index needs. */
import type { IndexRow } from '../catalog/contract.ts';
import type { Encoder, EncoderModel } from '../encoder/contract.ts';
import { ServiceError, invalid } from '../errors.ts';

const retryAfterSeconds = 5;

/** A model named in configuration: `version` absent = the one that the encoders serve. */
export interface ModelChoice {
  readonly name: string;
  readonly version?: string;
}

/** The model of an index in exactly its version; another version is never used in its place. */
export function modelOfIndex(
  encoder: Encoder,
  index: Pick<IndexRow, 'model' | 'modelVersion'>,
): EncoderModel {
  const model = encoder
    .models()
    .find(({ name, version }) => name === index.model && version === index.modelVersion);
  if (model !== undefined) return model;
  throw new ServiceError(
    'service_unavailable',
    'the model version of this index is not served at the moment',
    {
      retryAfterSeconds,
    },
  );
}

/** The default model, which also encodes transient documents. */
export function defaultModel(encoder: Encoder, choice: ModelChoice): EncoderModel {
  const model = encoder
    .models()
    .find(({ name, version }) => name === choice.name && (choice.version ?? version) === version);
  if (model !== undefined) return model;
  throw noEncoder();
}

/** The model a create-index request asks for. */
export function chooseModel(
  encoder: Encoder,
  choice: ModelChoice,
  requested: string | undefined,
): EncoderModel {
  if (requested === undefined || requested === choice.name) return defaultModel(encoder, choice);
  const served = encoder.models();
  const model = served.find(({ name }) => name === requested);
  if (model !== undefined) return model;
  if (served.length === 0) throw noEncoder();
  throw invalid('model', 'no such model', 'unknown_model');
}

function noEncoder(): ServiceError {
  return new ServiceError('service_unavailable', 'no encoder serves the model at the moment', {
    retryAfterSeconds,
  });
}
