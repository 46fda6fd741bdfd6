/**
 * Searches an index: it encodes the query, asks the engine on a pinned snapshot, reads the documents of the results, charges
 * and answers. The charge is in the ledger before the answer leaves. A search that fails before that is not charged.
 */
import { setImmediate } from 'node:timers/promises';
import type { StoredDocument } from '../../catalog/contract.ts';
import { rowsLeft } from '../../contracts/row-shape.ts';
import type { EncodedQuery, EncodeOptions, EncoderModel } from '../../encoder/protocol/contract.ts';
import { assertInvariant, unavailable } from '../../errors.ts';
import type { Asker, IndexReader } from '../../index/contract.ts';
import type { NativeMatching, NativeSearchResult } from '../../index/engine/native.ts';
import { conditionOf } from '../../index/terms/condition.ts';
import { metadataTerms } from '../../index/terms/metadata-terms.ts';
import { candidateKMax, topKDefault } from '../contract.ts';
import type { RankedResponse, RequestContext, RequestUsage, ResultItem, SearchRequest } from '../contract.ts';
import {
  askerOf,
  assertWanted,
  encodedQuery,
  encodeOptions,
  encoderStages,
  pieceOf,
  requestUsage,
  timed,
  timeLeftMs,
  tokensLeftBehind,
  type OperationDeps,
} from '../operation-deps.ts';
import { componentsOf, normalizedScore, textRangeAt, weightOf } from './ranking.ts';
import { readableIndex, type ReadableIndex } from './read-index.ts';
import type { Place } from '../limits/fair-queue.ts';
import { takingTurns } from '../limits/turns.ts';
import { assertAffordable, costOf, longWork, lookupWork, sliceWork, type QueryCost } from '../limits/work.ts';
import type { TokenHold } from '../limits/token-allowance.ts';
import {
  matchesOf,
  plannedMatch,
  wantedMatch,
  weighedMatch,
  type PlannedMatch,
  type WeighedMatch,
} from '../match/match.ts';
import { shownResults, textInField, wantsHighlights } from '../passages/shown-results.ts';
import { hintFor } from '../hints/hints.ts';
import { assertUnexpired, unexpired } from './unexpired.ts';

/** A filter that every document passes. */
const noFields = '{}';
const candidateKMin = 200;
/** With more room than this a query's bytes are reserved for its tokens. With less its tokens are counted first. */
const cheapReservationRoom = 1_000_000n;

export interface PlacedSearch extends SearchRequest {
  /** Its path in the request, with a point at the end. */
  readonly path: string;
}

export interface Searched {
  /** In the order of the searches. A grouped answer goes document by document. */
  readonly answers: readonly RankedResponse[];
  readonly usage: RequestUsage;
}

/** Runs the searches of a request on one snapshot, one after the other. Their queries are encoded together. */
export async function runSearches(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  searches: readonly PlacedSearch[],
): Promise<Searched> {
  const filters = await filtersOf(searches);
  const { row, model, read } = await readableIndex(deps, context, indexId);
  const plans = await plansOf(deps, context, { searches, filters, row, model, read });
  const work = sumOf(plans, ({ cost }) => cost.encoding + cost.engine);
  assertAffordable(work, searches.some(({ path }) => path !== '') ? 'queries' : 'query');
  const hold = await deps.allowance.open(context.tenant);
  const place = deps.engineQueue.enter(context.tenant.id, work);
  try {
    const queries = await encodeQueries(deps, context, { model, hold, searches, plans });
    assertWanted(context, deps.nowMs());
    const answers = await unexpired(deps, context, row, () =>
      read(async (reader) => {
        const found: RankedResponse[] = [];
        for (const [number, search] of searches.entries()) {
          const encoded = queries[number];
          assertInvariant(encoded !== undefined, 'every query was encoded');
          assertWanted(context, deps.nowMs());
          // A request looks for the reason of an empty answer once.
          const maySeek = found.every(({ results }) => results.length > 0);
          const ask = { ...filters[number], ...sizesOf(search), search, ...encoded, maySeek };
          const asker = searchAsker(context, place, plans[number]?.cost.engine ?? 0);
          found.push(await searchOnce(deps, context, indexId, reader, asker, ask));
        }
        return found;
      }),
    );
    const shown = await shownAnswers(deps, context, searches, { queries, answers });
    const inputTokens = sumOf(queries, ({ query }) => query.inputTokens);
    assertWanted(context, deps.nowMs());
    await timed(context, 'usage', () =>
      deps.usage.record(context, {
        month: hold.month,
        inputTokens: BigInt(inputTokens),
        searches: searches.length,
      }),
    );
    hold.settle(BigInt(inputTokens));
    const usage = requestUsage(context, deps.nowMs(), {
      inputTokens,
      documentCount: 0,
      chunkCount: sumOf(answers, (answer) => answer.usage.chunkCount),
      candidateCount: sumOf(answers, (answer) => answer.usage.candidateCount),
    });
    return { answers: shown, usage };
  } finally {
    place.leave();
    hold.release(tokensLeftBehind(context));
  }
}

async function shownAnswers(
  deps: OperationDeps,
  context: RequestContext,
  searches: readonly PlacedSearch[],
  found: { readonly queries: readonly WeighedQuery[]; readonly answers: readonly RankedResponse[] },
): Promise<readonly RankedResponse[]> {
  const shown: RankedResponse[] = [];
  for (const [number, search] of searches.entries()) {
    const answer = found.answers[number];
    assertInvariant(answer !== undefined, 'every search has an answer');
    const wanted = { ...search, spans: found.queries[number]?.query.spans, textOf: textInField(search) };
    shown.push({ ...answer, results: await shownResults(deps, context, answer.results, wanted) });
  }
  return shown;
}

type Filters = Pick<NativeMatching, 'filterTerms' | 'where'>;

/** The filters of each search. A filter may take a millisecond, so other requests get a turn between two. */
async function filtersOf(searches: readonly PlacedSearch[]): Promise<readonly Filters[]> {
  const filters: Filters[] = [];
  for (const { filter, where, path } of searches) {
    if (filters.length > 0) await setImmediate();
    filters.push(filtersFor({ filter, where }, path));
  }
  return filters;
}

/** @throws {ServiceError} `validation_error` when `where` is no condition. */
export function filtersFor(
  { filter, where }: Pick<SearchRequest, 'filter' | 'where'>,
  path: string,
): Filters {
  const condition = where === undefined ? undefined : conditionOf(where, `${path}where`);
  return {
    ...(filter === undefined || filter === noFields ? {} : { filterTerms: metadataTerms(filter) }),
    ...(condition === undefined ? {} : { where: condition }),
  };
}

/** A search, as far as it is known before its query is encoded. */
interface PlannedSearch {
  readonly cost: QueryCost;
  /** Absent for a search that matches no words. */
  readonly match: PlannedMatch | undefined;
}

/** The index counts the documents that words of the queries match, and what exact searches would score. */
async function plansOf(
  deps: OperationDeps,
  context: RequestContext,
  {
    searches,
    filters,
    row,
    model,
    read,
  }: ReadableIndex & {
    readonly searches: readonly PlacedSearch[];
    readonly filters: readonly Filters[];
  },
): Promise<readonly PlannedSearch[]> {
  const queryTokensMax = model.windowTokensMax;
  const wanted = searches.map((search) => wantedMatch(search, row.matchFields, search.path));
  const plans: PlannedSearch[] = [];
  for (const [number, search] of searches.entries()) {
    const { query } = search;
    const within = () => ({ ...filters[number], timeoutMs: timeLeftMs(context, deps.nowMs()) });
    const asker = askerOf(deps, context);
    const match =
      wanted[number] &&
      (await plannedMatch(wanted[number], query, (spans) =>
        read((reader) =>
          reader.countSpans({ ...within(), ...spans }, askerOf(deps, context, lookupWork(spans.terms))),
        ),
      ));
    if (search.exact === true) {
      const tokenVectors = await read((reader) => reader.tokenVectors(within(), asker));
      plans.push({ match, cost: costOf({ query, queryTokensMax, scored: { tokenVectors } }) });
    } else {
      const { candidateK } = sizesOf(search);
      const grouped = search.groupByDocument === true;
      const scored = { candidateK, grouped, chunkRowsMax: rowsLeft(row.chunking.maxTokens, model) };
      const matchedTokenVectors = match?.tokenVectors ?? 0;
      plans.push({ match, cost: costOf({ query, queryTokensMax, scored, matchedTokenVectors }) });
    }
  }
  return plans;
}

/** A long search gives way, and takes several turns. Each is a piece of its own. */
export function searchAsker(context: RequestContext, place: Place, work: number): Asker {
  let left = work;
  return {
    signal: context.signal,
    async inTurn(task) {
      const piece = Math.min(left, sliceWork);
      const found = await place.run(pieceOf(context, piece), task);
      // A search that has given way is long, whatever its estimate was.
      if (found === undefined) left = Math.max(longWork + 1, left - piece);
      return found;
    },
  };
}

/** Runs one search on a snapshot and reads the documents of its results. */
async function searchOnce(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  reader: IndexReader,
  asker: Asker,
  ask: Filters & {
    readonly topK: number;
    readonly skip: number;
    readonly candidateK: number;
    readonly search: PlacedSearch;
    readonly query: EncodedQuery;
    readonly match: WeighedMatch | undefined;
    readonly maySeek: boolean;
  },
): Promise<RankedResponse> {
  const { search, query, match, maySeek, ...wanted } = ask;
  const asked = {
    ...wanted,
    query: query.vectors,
    offsets: query.offsets,
    components: search.returnComponents,
    ...(search.groupByDocument === true ? { grouped: true } : {}),
    ...(search.exact === true ? { plan: 'exact' as const } : {}),
    ...(match?.asked === undefined ? {} : { match: match.asked }),
    timeoutMs: timeLeftMs(context, deps.nowMs()),
  };
  const found = await timed(context, 'engine', () => reader.search(asked, asker));
  noteEngineTimings(context, found);
  const versions = await timed(context, 'resolve', () =>
    deps.versions.resolve(indexId, [...new Set(found.versionIds)]),
  );
  // The catalog keeps every version that a pinned snapshot sees, unless the whole index is erased. An answer that left a
  // result out would be wrong.
  const unknown = [...found.versionIds].find((id) => !versions.has(id));
  if (unknown !== undefined) {
    const cause = `the catalog does not hold document version ${unknown}, which the index does`;
    throw unavailable('a document that was found cannot be read', new Error(cause), 30);
  }
  assertUnexpired(deps, versions.values());
  const results = await resultItems(deps, context, found, {
    versions,
    query,
    match,
    minScore: search.minScore,
  });
  const usage = requestUsage(context, deps.nowMs(), {
    inputTokens: query.inputTokens,
    documentCount: 0,
    chunkCount: results.length,
    candidateCount: found.candidateCount,
  });
  const before = found.versionIds.length + asked.skip;
  const hint = await hintFor(deps, context, reader, { ...search, indexId, found: before, maySeek });
  return { results, ...hint, usage };
}

/** The sizes of a search with their defaults. There are at least as many candidates as are skipped and answered. */
function sizesOf(request: Pick<SearchRequest, 'topK' | 'offset' | 'candidateK'>): {
  readonly topK: number;
  readonly skip: number;
  readonly candidateK: number;
} {
  const topK = request.topK ?? topKDefault;
  const skip = request.offset ?? 0;
  const candidateK = request.candidateK ?? Math.min(candidateKMax, Math.max(candidateKMin, 5 * topK));
  return { topK, skip, candidateK: Math.max(skip + topK, candidateK) };
}

/**
 * Reserves the tokens of queries, then encodes them. A text has at most as many tokens as bytes. So with room to spare the
 * bytes are reserved. Near the end of the allowance the tokens are counted first, so that only a request that really exceeds
 * the allowance is refused.
 */
async function encodeQueries(
  deps: OperationDeps,
  context: RequestContext,
  {
    model,
    hold,
    searches,
    plans,
  }: {
    readonly model: EncoderModel;
    readonly hold: TokenHold;
    readonly searches: readonly PlacedSearch[];
    readonly plans: readonly PlannedSearch[];
  },
): Promise<readonly WeighedQuery[]> {
  const options = encodeOptions(context, model);
  const texts = searches.map(({ query }) => query);
  const bytes = BigInt(sumOf(texts, (text) => Buffer.byteLength(text)));
  if (hold.remaining < bytes + cheapReservationRoom || !hold.tryReserve(bytes)) {
    const counted = await timed(context, 'count', () => deps.encoders.countTokens(texts, options));
    hold.reserve(BigInt(sumOf(counted, (tokens) => tokens)));
  }
  const queries = await timed(context, 'encode', () =>
    Promise.all(
      searches.map((search, number) => weighedQuery(deps, context, search, plans[number]?.match, options)),
    ),
  );
  // The queries ran side by side, so the slowest says where the time went.
  const stages = queries.map(({ query }) => encoderStages(query.timings));
  const msOf = (one: (typeof stages)[number]) => sumOf(Object.values(one), (ms) => ms);
  context.timings.noteParts('encode', stages.toSorted((a, b) => msOf(b) - msOf(a))[0] ?? {});
  // A tokenizer whose normalisation adds characters could exceed the bytes. The rest is reserved now.
  const tokens = BigInt(sumOf(queries, ({ query }) => query.inputTokens));
  if (tokens > hold.reserved) hold.reserve(tokens - hold.reserved);
  return queries;
}

/** An encoded query, and the bonuses of its words. */
interface WeighedQuery {
  readonly query: EncodedQuery;
  readonly match: WeighedMatch | undefined;
}

async function weighedQuery(
  deps: OperationDeps,
  context: RequestContext,
  search: PlacedSearch,
  match: PlannedMatch | undefined,
  options: EncodeOptions,
): Promise<WeighedQuery> {
  const matches = match !== undefined && match.spans.length > 0;
  const { query: text, path } = search;
  const located = matches || wantsHighlights(search);
  const query = await encodedQuery(deps, context, { text, path: `${path}query` }, { ...options, located });
  // Encoders of earlier releases say the places in a call of its own.
  const places = matches ? (query.spans ?? (await deps.encoders.locateTokens({ text }, options))) : undefined;
  return { query, match: match && weighedMatch(match, text, query, places) };
}

function sumOf<T>(values: readonly T[], numberOf: (value: T) => number): number {
  return values.reduce((sum, value) => sum + numberOf(value), 0);
}

async function resultItems(
  { nowMs }: OperationDeps,
  context: RequestContext,
  found: NativeSearchResult,
  {
    versions,
    query,
    match,
    minScore = 0,
  }: WeighedQuery & {
    readonly versions: ReadonlyMap<number, StoredDocument>;
    readonly minScore: number | undefined;
  },
): Promise<ResultItem[]> {
  const items: ResultItem[] = [];
  const { rows: queryRows } = query;
  const weight = weightOf(query);
  const giveWay = takingTurns();
  for (const [position, versionId] of found.versionIds.entries()) {
    await giveWay();
    assertWanted(context, nowMs());
    const version = versions.get(versionId);
    assertInvariant(version !== undefined, 'every result was resolved');
    const chunkIndex = found.chunkIndexes[position] ?? 0;
    const score = found.scores[position] ?? 0;
    const normalized = normalizedScore(score, weight);
    if (normalized < minScore) continue;
    const textRange = textRangeAt(found.chunkRanges, { chunk: position, fields: 2 });
    const rowPlaces = found.rowPlaces?.[position];
    const maxsim = found.maxsims?.[position] ?? score;
    const components = componentsOf({ ...found, maxsim, position, queryRows, textRange, rowPlaces });
    const matches = match && components && matchesOf(match, found, { position, metadata: version.metadata });
    items.push({
      docId: version.docId,
      chunkId: chunkIdOf(versionId, chunkIndex),
      chunkIndex,
      score,
      normalizedScore: normalized,
      ...(textRange === undefined ? {} : { textRange }),
      metadata: version.metadata,
      ...(components === undefined
        ? {}
        : { components: { ...components, ...(matches === undefined ? {} : { matches }) } }),
    });
  }
  return items;
}

/** Version ids are never reused. So the id of a chunk holds until its document is replaced. */
function chunkIdOf(versionId: number, chunkIndex: number): string {
  return `${versionId.toString(36)}-${chunkIndex.toString(36)}`;
}

function noteEngineTimings(context: RequestContext, { timings }: NativeSearchResult): void {
  context.timings.noteParts('engine', {
    engine_queue: timings.queueMs,
    engine_filter: timings.filterMs,
    engine_candidates: timings.candidatesMs,
    engine_exact: timings.exactMs,
  });
}
