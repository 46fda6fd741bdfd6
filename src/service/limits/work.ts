/**
 * Estimates what a request costs before it is done, in units of work. A unit is the cost of encoding one token with the default
 * model: about 100 microseconds of one core. The constants say how much of other work costs one unit.
 */
import { estimatedTokens } from '../../encoder/protocol/estimated-tokens.ts';
import { invalid, unavailable, type ServiceError } from '../../errors.ts';
import { sliceMs } from '../../index/slices.ts';
import { termBytes } from '../../index/terms/metadata-terms.ts';

export const unitsPerMs = 10;
/** Products of a token vector of a chunk with a token vector of a query. */
const productsPerUnit = 1 << 18;
const rowsPerUnit = 50;
const bytesPerUnit = 16_384;
/** Terms that are looked up in all segments of an index. */
const termsPerUnit = 50;

/** The least that a search costs. */
export const unitsOfSearch = 10;
/** A grouped search looks at this many times the candidates on average, since few documents have many chunks. */
const groupedFactor = 4;

/** A piece of more than 10 ms is long. */
export const longWork = 100;

/** A search gives way after so much work. */
export const sliceWork = sliceMs * unitsPerMs;

/** A request that searches may cost five seconds of one core. */
export const searchWorkMax = 50_000;
/** The requests of a tenant that are here at the same time may cost this much together. */
export const tenantWorkMax = 100_000;

/** The token vectors that a search scores: those of its candidates, or of an exact search all that match. A pooled row is one. */
type Scored =
  | { readonly candidateK: number; readonly grouped: boolean; readonly chunkRowsMax: number }
  | { readonly tokenVectors: number };

export interface QueryWork {
  readonly query: string;
  /** The model reads no more tokens of a query than this. Absent while the index is not known. */
  readonly queryTokensMax?: number;
  /** Absent while the index is not known. */
  readonly scored?: Scored;
  /** The token vectors that it scores beside these, because words of the query match their documents. */
  readonly matchedTokenVectors?: number;
}

/** In units. */
export interface QueryCost {
  /** The encoder's part: its tokens. */
  readonly encoding: number;
  /** The engine's part, with all else that a search costs. */
  readonly engine: number;
}

export function costOf({
  query,
  queryTokensMax = Infinity,
  scored,
  matchedTokenVectors = 0,
}: QueryWork): QueryCost {
  const encoding = Math.min(queryTokensMax, estimatedTokens(query));
  const scoring = scored === undefined ? 0 : workOfScored(scored, encoding);
  return { encoding, engine: unitsOfSearch + scoring + scoringWork(matchedTokenVectors, encoding) };
}

/** An exact search reads far more token vectors than fit into caches. With short queries memory sets the time. */
const exactQueryTokensMin = 16;

function workOfScored(scored: Scored, queryTokens: number): number {
  if ('tokenVectors' in scored)
    return scoringWork(scored.tokenVectors, Math.max(exactQueryTokensMin, queryTokens));
  const { candidateK, grouped, chunkRowsMax } = scored;
  return scoringWork(candidateK * (grouped ? groupedFactor : 1) * chunkRowsMax, queryTokens);
}

/** The work of scoring this many token vectors exactly. */
export function scoringWork(tokenVectors: number, tokensOfQuery: number): number {
  return (tokenVectors * tokensOfQuery) / productsPerUnit;
}

/** The work of reading this many rows of the catalog, with bytes of metadata. */
export function readingWork({ rows, bytes }: { readonly rows: number; readonly bytes: number }): number {
  return rows / rowsPerUnit + bytes / bytesPerUnit;
}

/** The work of counting the documents that carry these terms. */
export function lookupWork(terms: Uint8Array): number {
  return unitsOfSearch + terms.length / termBytes / termsPerUnit;
}

/** @throws {ServiceError} `validation_error` when a request would cost more than `searchWorkMax`. */
export function assertAffordable(work: number, path: string): void {
  if (work <= searchWorkMax) return;
  throw invalid(
    path,
    `the request would cost about ${Math.ceil(work)} units of work, and a request may cost ${searchWorkMax}: ask for fewer or shorter queries, a smaller candidate_k, or no exact search`,
    'too_much_work',
  );
}

/** Refuses a request that would wait too long behind other requests of its tenant. */
export function tooMuchWaits(work: number, waiting: number): ServiceError {
  return unavailable(
    `the request would cost about ${Math.ceil(work)} units of work; other requests of the tenant in progress already cost ${Math.ceil(waiting)}, and together they may cost ${tenantWorkMax}`,
  );
}
