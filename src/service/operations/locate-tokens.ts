/** Locates the tokens of a query and of a chunk in their texts, so that people see what matched. Nothing is kept. */
import type { ChunkingParameters, EncoderModel, LocatedText } from '../../encoder/protocol/contract.ts';
import type { LocateRequest, LocatedTokens, RequestContext, TokenSpanList } from '../contract.ts';
import { defaultModel, modelOfIndex } from '../indexes/served-models.ts';
import { encodeOptions, type OperationDeps } from '../operation-deps.ts';
import { chunkingOf } from './create-index.ts';

export async function locateTokens(
  deps: OperationDeps,
  context: RequestContext,
  { indexId, query, document }: LocateRequest,
): Promise<LocatedTokens> {
  const { model, chunking } = await modelAndChunking(deps, context, indexId);
  const options = encodeOptions(context, model);
  const locate = async (located: LocatedText): Promise<TokenSpanList | undefined> => {
    const { problem, starts, ends } = await deps.encoders.locateTokens(located, options);
    return problem === undefined ? Array.from(starts, (start, row) => [start, ends[row]!]) : undefined;
  };
  return {
    query: await locate({ text: query }),
    document: document && (await locate({ ...document, chunking })),
  };
}

async function modelAndChunking(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string | undefined,
): Promise<{ readonly model: EncoderModel; readonly chunking: ChunkingParameters }> {
  if (indexId === undefined) {
    const model = await defaultModel(deps.encoders, deps.modelOfMoment, context);
    return { model, chunking: chunkingOf(model) };
  }
  const row = await deps.indexes.usableRow(context.tenant.id, indexId);
  return { model: await modelOfIndex(deps.encoders, row, context), chunking: row.chunking };
}
