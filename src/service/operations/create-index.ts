/** Creates an index. Its model version and its chunking are decided here, for ever. */
import { randomUUID } from 'node:crypto';
import type { IndexRow } from '../../catalog/contract.ts';
import type { ChunkingParameters, EncoderModel } from '../../encoder/protocol/contract.ts';
import { ServiceError, invalid } from '../../errors.ts';
import type { Issue } from '../../errors.ts';
import { areEqualObjects } from '../../index/terms/canonical-json.ts';
import type { CreatedIndex, CreateIndexRequest, RequestContext } from '../contract.ts';
import type { OperationDeps } from '../operation-deps.ts';
import { duplicateName } from '../indexes/indexes.ts';
import { chooseModel } from '../indexes/served-models.ts';

const indexesMax = 1_000;
const maxTokensDefault = 256;
const overlapTokensDefault = 32;
const minimumChunkTokensDefault = 16;

export async function createIndex(
  deps: OperationDeps,
  context: RequestContext,
  request: CreateIndexRequest,
): Promise<CreatedIndex> {
  const { catalog } = deps;
  const tenantId = context.tenant.id;
  if (request.returnsExisting === true) {
    // The model of an index that exists may not be installed any more.
    const indexId = await catalog.findIndexId(tenantId, request.name);
    const existing = indexId === undefined ? undefined : await catalog.getIndex(tenantId, indexId);
    if (existing?.name === request.name) return agreeing(existing, request);
  }
  const { matchFields = [] } = request;
  await deps.indexes.assertMatchable(matchFields);
  const model = await chooseModel(deps.encoders, deps.modelOfMoment, request, context);
  const created = await catalog.createIndex(
    {
      id: randomUUID(),
      tenantId,
      name: request.name,
      model: model.name,
      modelVersion: model.version,
      chunking: chunkingOf(model, request.chunking),
      metadataSchema: request.metadataSchema ?? '{}',
      matchFields,
    },
    indexesMax,
  );
  if (created.outcome === 'created') return { ...created.index, isNew: true };
  if (created.outcome === 'too_many_indexes')
    throw invalid('name', `a tenant has at most ${indexesMax} indexes`, 'too_many_indexes');
  if (request.returnsExisting !== true) throw duplicateName();
  return agreeing(created.index, request);
}

/**
 * The index that has the name already.
 * @throws {ServiceError} `validation_error` with each field of the request that the index has otherwise.
 */
function agreeing(index: IndexRow, request: CreateIndexRequest): CreatedIndex {
  const { model, modelVersion, metadataSchema, matchFields, chunking = {} } = request;
  const issues: Issue[] = [];
  const differs = (path: string, existing: unknown): void => {
    issues.push({ path, message: `the index exists with ${JSON.stringify(existing)}`, code: 'differs' });
  };
  const compare = <Value>(path: string, given: Value | undefined, existing: Value): void => {
    if (given !== undefined && given !== existing) differs(path, existing);
  };
  compare('model', model, index.model);
  compare('model_version', modelVersion, index.modelVersion);
  compare('chunking.max_tokens', chunking.maxTokens, index.chunking.maxTokens);
  compare('chunking.overlap_tokens', chunking.overlapTokens, index.chunking.overlapTokens);
  compare('chunking.minimum_chunk_tokens', chunking.minimumChunkTokens, index.chunking.minimumChunkTokens);
  if (metadataSchema !== undefined && !areEqualObjects(metadataSchema, index.metadataSchema)) {
    issues.push({ path: 'metadata_schema', message: 'the index exists with another', code: 'differs' });
  }
  if (matchFields !== undefined && !haveEqualItems(matchFields, index.matchFields)) {
    differs('match_fields', index.matchFields);
  }
  const [first] = issues;
  if (first === undefined) return { ...index, isNew: false };
  throw new ServiceError('validation_error', `${first.path}: ${first.message}`, { issues });
}

/** Whether two lists without doubles have the same items, in any order. */
function haveEqualItems(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item) => other.includes(item));
}

/**
 * The chunking of an index, in tokens: windows of `max_tokens` that share `overlap_tokens` with their neighbour, at most half. The
 * defaults shrink with the window, of which an eighth overlaps.
 * @throws {ServiceError} `validation_error` when the model cannot take such windows, or the numbers contradict each other.
 */
export function chunkingOf(
  model: Pick<EncoderModel, 'windowTokensMax'>,
  request: CreateIndexRequest['chunking'] = {},
): ChunkingParameters {
  const maxTokens = request.maxTokens ?? Math.min(maxTokensDefault, model.windowTokensMax);
  const overlapTokens = request.overlapTokens ?? Math.min(overlapTokensDefault, Math.floor(maxTokens / 8));
  const minimumChunkTokens = request.minimumChunkTokens ?? Math.min(minimumChunkTokensDefault, maxTokens);
  const issues: Issue[] = [];
  const refuse = (field: string, code: string, message: string): void => {
    issues.push({ path: `chunking.${field}`, message, code });
  };
  if (maxTokens < 1) refuse('max_tokens', 'too_small', 'must be at least 1');
  if (maxTokens > model.windowTokensMax) {
    refuse('max_tokens', 'too_big', `the model takes at most ${model.windowTokensMax} tokens`);
  }
  if (overlapTokens < 0) refuse('overlap_tokens', 'too_small', 'must be at least 0');
  if (overlapTokens > maxTokens / 2) {
    refuse('overlap_tokens', 'too_big', 'must be at most half of max_tokens');
  }
  if (minimumChunkTokens < 0) refuse('minimum_chunk_tokens', 'too_small', 'must be at least 0');
  if (minimumChunkTokens > maxTokens) {
    refuse('minimum_chunk_tokens', 'too_big', 'must not be above max_tokens');
  }
  if (issues.length > 0) {
    throw new ServiceError('validation_error', 'the chunking is not possible with this model', { issues });
  }
  return { maxTokens, overlapTokens, minimumChunkTokens };
}
