/**
 * Scores transient documents. Once the tokens are reserved, query and documents are encoded side by side. Each document is
 * scored as it arrives and then dropped. Nothing is stored but the usage.
 *
 * The result of a document is its best chunk. Ties stay in the order submitted. A document without tokens has no chunk and no
 * result. A query or document that the model cannot encode refuses the request, because the answer has no place for it.
 */
import { rowBytes, type RowShape } from '../../contracts/row-shape.ts';
import type { EncodedDocument, EncodedQuery, EncoderModel } from '../../encoder/protocol/contract.ts';
import { cutAt, type TokenCut } from '../../encoder/protocol/token-cut.ts';
import { rangeFields } from '../../encoder/protocol/row-places.ts';
import { assertInvariant, invalid } from '../../errors.ts';
import { chunkingOf } from './create-index.ts';
import {
  rerankedTokensDefault,
  rerankedTokensMax,
  rerankedTokensMaxOnGpu,
  type DocumentInput,
  type RequestContext,
  type ResultItem,
  type ScoreRequest,
  type ScoreResponse,
} from '../contract.ts';
import {
  assertWanted,
  encodedQuery,
  encodeOptions,
  pieceOf,
  requestUsage,
  timed,
  tokensLeftBehind,
  type OperationDeps,
} from '../operation-deps.ts';
import { shownResults, wantsHighlights } from '../passages/shown-results.ts';
import { componentsOf, normalizedScore, textRangeAt, weightOf } from './ranking.ts';
import { modelOfRerank } from '../indexes/served-models.ts';
import { scoringWork } from '../limits/work.ts';
import type { TokenHold } from '../limits/token-allowance.ts';

interface Best {
  readonly input: DocumentInput;
  readonly documentIndex: number;
  readonly chunkIndex: number;
  readonly score: number;
  readonly normalizedScore: number;
  readonly textRange: ResultItem['textRange'];
  readonly components: ResultItem['components'];
}

type TokenMatrices = Pick<EncodedDocument, 'chunkRows' | 'vectors' | 'scales'>;

interface Scored {
  readonly inputTokens: number;
  readonly spans: EncodedQuery['spans'];
  readonly best: readonly Best[];
  /** Chunks of each document, in the order submitted. */
  readonly chunkCounts: Uint32Array;
  readonly cut: ScoreResponse['cut'];
}

export async function scoreDocuments(
  deps: OperationDeps,
  context: RequestContext,
  request: ScoreRequest,
): Promise<ScoreResponse> {
  const hold = await deps.allowance.open(context.tenant);
  try {
    const scored = await timed(context, 'score', () => scoreAll(deps, context, request, hold));
    const texts = new Map(request.documents.map(({ docId, text }) => [docId, text]));
    const results = await shownResults(deps, context, resultItems(scored, request.minScore), {
      ...request,
      spans: scored.spans,
      textOf: ({ docId }) => texts.get(docId),
    });
    const { cut } = scored;
    assertWanted(context, deps.nowMs());
    await timed(context, 'usage', () =>
      deps.usage.record(context, { month: hold.month, inputTokens: BigInt(scored.inputTokens), scores: 1 }),
    );
    hold.settle(BigInt(scored.inputTokens));
    return {
      results,
      ...(cut === undefined ? {} : { cut }),
      usage: requestUsage(context, deps.nowMs(), {
        inputTokens: scored.inputTokens,
        documentCount: 0,
        chunkCount: 0,
        candidateCount: request.documents.length,
      }),
    };
  } finally {
    hold.release(tokensLeftBehind(context));
  }
}

async function scoreAll(
  deps: OperationDeps,
  context: RequestContext,
  request: ScoreRequest,
  hold: TokenHold,
): Promise<Scored> {
  const model = await modelOfRerank(deps, request.model, context);
  const options = encodeOptions(context, model);
  const cut = cutOf(deps, model, request);
  let cutDone: ScoreResponse['cut'];
  const query = Promise.withResolvers<EncodedQuery>();
  // It is awaited with the first document. Until then a failure must not count as unhandled.
  query.promise.catch(() => undefined);
  const encoded = deps.encoders.encodeDocuments(
    request.documents.map(({ text }) => text),
    {
      ...options,
      chunking: chunkingOf(model),
      ...(cut === undefined ? {} : { cut }),
      onLeft: (tokens) => {
        context.spent.inputTokens += tokens;
      },
      onTokenCounts: async (documentTokens, wholeTokens) => {
        if (cut !== undefined) {
          if (request.cut?.documentTokensMax !== undefined) assertFits(wholeTokens, cut);
          cutDone = cutDocuments(documentTokens, wholeTokens, cut);
        }
        const [queryTokens = 0] = await deps.encoders.countTokens([request.query], options);
        hold.reserve(documentTokens.reduce((sum, tokens) => sum + BigInt(tokens), BigInt(queryTokens)));
        const located = wantsHighlights(request);
        const text = { text: request.query, path: 'query' };
        query.resolve(encodedQuery(deps, context, text, { ...options, located }));
      },
    },
  );
  const best: Best[] = [];
  const chunkCounts = new Uint32Array(request.documents.length);
  let documentTokens = 0;
  let weight: number | undefined;
  for await (const document of encoded) {
    context.spent.inputTokens += document.inputTokens;
    assertWanted(context, deps.nowMs());
    const input = request.documents[document.documentIndex];
    assertInvariant(input !== undefined, 'an encoded document was submitted');
    if (document.problem !== undefined) {
      throw invalid(`documents.${document.documentIndex}.text`, document.problem, 'text_not_encodable');
    }
    documentTokens += document.inputTokens;
    chunkCounts[document.documentIndex] = document.chunkRows.length;
    if (document.chunkRows.length === 0) continue;
    const encodedQueryText = await query.promise;
    weight ??= weightOf(encodedQueryText);
    best.push(
      await bestChunk(deps, context, {
        query: encodedQueryText,
        weight,
        shape: { dim: model.dim, rowBits: model.rowBits },
        input,
        document,
        request,
      }),
    );
  }
  const { inputTokens, spans } = await query.promise;
  return { inputTokens: documentTokens + inputTokens, spans, best, chunkCounts, cut: cutDone };
}

/** How long documents are cut; `undefined` = they count whole. */
function cutOf(
  { encoders }: Pick<OperationDeps, 'encoders'>,
  model: EncoderModel,
  { cut }: Pick<ScoreRequest, 'cut'>,
): TokenCut | undefined {
  if (cut === undefined) return undefined;
  const documentTokensMax = cut.documentTokensMax ?? rerankedTokensDefault;
  const tokensMax = encoders.runsOnGpu(model) ? rerankedTokensMaxOnGpu : rerankedTokensMax;
  return { documentTokensMax: Math.min(documentTokensMax, tokensMax), tokensMax };
}

/** A request that says where documents are cut is not cut further. It is refused before anything is encoded. */
function assertFits(wholeTokens: readonly number[], cut: TokenCut): void {
  const { documentTokensMax, tokensMax } = cut;
  const tokens = wholeTokens.reduce((sum, whole) => sum + Math.min(whole, documentTokensMax), 0);
  if (tokens <= tokensMax) return;
  throw invalid(
    'documents',
    `have ${tokens} tokens or more together after cutting at max_tokens_per_doc ${documentTokensMax}, and a request may have ${tokensMax}: send max_tokens_per_doc of at most ${cutAt(wholeTokens, cut)}, or fewer documents`,
    'too_much_work',
  );
}

/** Says what was cut. An encoder of an earlier release cuts nothing. */
function cutDocuments(
  tokens: readonly number[],
  wholeTokens: readonly number[],
  { documentTokensMax, tokensMax }: TokenCut,
): ScoreResponse['cut'] {
  const cut = tokens.filter((left, at) => left < (wholeTokens[at] ?? left));
  const [left] = cut;
  if (left === undefined) return undefined;
  const isToFit = left < documentTokensMax;
  return { documents: cut.length, tokens: left, tokensMax, isToFit };
}

async function bestChunk(
  deps: OperationDeps,
  context: RequestContext,
  scoring: {
    readonly query: EncodedQuery;
    readonly weight: number;
    readonly shape: RowShape;
    readonly input: DocumentInput;
    readonly document: EncodedDocument;
    readonly request: ScoreRequest;
  },
): Promise<Best> {
  const { query, weight, shape, input, document, request } = scoring;
  const asked = { query: query.vectors, offsets: query.offsets, ...shape };
  const piece = pieceOf(context, scoringWork(document.scales.length, query.rows));
  const { scores } = await deps.engineQueue.run(context.tenant.id, piece, () =>
    deps.engine.score({ ...asked, components: false }, document),
  );
  let chunkIndex = 0;
  for (const [index, score] of scores.entries()) {
    if (score > (scores[chunkIndex] ?? score)) chunkIndex = index;
  }
  const score = scores[chunkIndex];
  assertInvariant(score !== undefined, 'a document with chunks has scores');
  // Components are computed for the answered chunk alone.
  const explained = request.returnComponents
    ? await deps.engine.score({ ...asked, components: true }, chunkOf(document, chunkIndex, rowBytes(shape)))
    : {};
  const textRange = textRangeAt(document.chunkRanges, { chunk: chunkIndex, fields: rangeFields });
  return {
    input,
    documentIndex: document.documentIndex,
    chunkIndex,
    score,
    normalizedScore: normalizedScore(score, weight),
    textRange,
    components: componentsOf({
      ...explained,
      maxsim: score,
      position: 0,
      queryRows: query.rows,
      textRange,
      rowPlaces: rowPlacesOf(document, chunkIndex),
    }),
  };
}

function rowPlacesOf(
  { chunkRanges, rowPlaces }: EncodedDocument,
  chunkIndex: number,
): Uint8Array | undefined {
  const bytesOf = (chunk: number): number => chunkRanges?.[chunk * rangeFields + 2] ?? 0;
  let first = 0;
  for (let chunk = 0; chunk < chunkIndex; chunk++) first += bytesOf(chunk);
  return rowPlaces?.subarray(first, first + bytesOf(chunkIndex));
}

function chunkOf(document: EncodedDocument, chunkIndex: number, bytes: number): TokenMatrices {
  const { chunkRows, vectors, scales } = document;
  const first = chunkRows.subarray(0, chunkIndex).reduce((sum, rows) => sum + rows, 0);
  const end = first + (chunkRows[chunkIndex] ?? 0);
  return {
    chunkRows: chunkRows.subarray(chunkIndex, chunkIndex + 1),
    vectors: vectors.subarray(first * bytes, end * bytes),
    scales: scales.subarray(first, end),
  };
}

function resultItems({ best, chunkCounts }: Scored, minScore = 0): ResultItem[] {
  // Chunks are numbered in the order submitted, whatever the order of encoding.
  const firstChunks: number[] = [];
  let chunks = 0;
  for (const count of chunkCounts) {
    firstChunks.push(chunks);
    chunks += count;
  }
  const ranked = best
    .filter(({ normalizedScore: normalized }) => normalized >= minScore)
    .toSorted((a, b) => b.score - a.score || a.documentIndex - b.documentIndex);
  return ranked.map(({ input, documentIndex, textRange, components, ...scored }) => ({
    docId: input.docId,
    chunkId: `transient_${(firstChunks[documentIndex] ?? 0) + scored.chunkIndex}`,
    ...scored,
    ...(textRange === undefined ? {} : { textRange }),
    metadata: input.metadata,
    ...(components === undefined ? {} : { components }),
  }));
}
