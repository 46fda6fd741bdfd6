/**
 * Work: what a request costs, estimated before it is done. One unit is what one token costs the encoder with the default
 * model: about 100 microseconds of one core. The other numbers say how much of something else costs as much.
 */
import { invalid, unavailable, type ServiceError } from '../../errors.ts';

export const unitsPerMs = 10;
/** Products of a token vector of a chunk with a token vector of a query. */
const productsPerUnit = 1 << 18;
const rowsPerUnit = 50;
const bytesPerUnit = 16_384;

/** Bytes of a text for each of its tokens, at least. */
const bytesPerToken = 4;
/** A search looks at its index whatever it asks for. */
export const unitsOfSearch = 10;
/** Many chunks of one document are rare: a grouped search looks at so many times the candidates on an average. */
const groupedFactor = 4;

/** What a request that searches may cost: five seconds of one core. */
export const searchWorkMax = 50_000;
/** What a tenant's requests may cost together that are there at the same time. */
export const tenantWorkMax = 100_000;

export interface SearchWork {
  readonly query: string;
  readonly candidateK: number;
  readonly grouped: boolean;
  /** Token vectors of a chunk, at most. */
  readonly chunkTokensMax: number;
  /** Positions of the model. */
  readonly queryTokensMax: number;
}

/** Tokens of a query, about. */
export function queryTokens({ query, queryTokensMax }: Pick<SearchWork, 'query' | 'queryTokensMax'>): number {
  return Math.min(queryTokensMax, Math.ceil(Buffer.byteLength(query) / bytesPerToken));
}

/** One search in the engine. */
export function engineWork(search: SearchWork): number {
  const { candidateK, grouped, chunkTokensMax } = search;
  const candidates = candidateK * (grouped ? groupedFactor : 1);
  return unitsOfSearch + scoringWork(candidates * chunkTokensMax, queryTokens(search));
}

/** Exact scores of so many token vectors. */
export function scoringWork(tokenVectors: number, tokensOfQuery: number): number {
  return (tokenVectors * tokensOfQuery) / productsPerUnit;
}

/** Reading so many rows of the catalog. */
export function readingWork({ rows, bytes }: { readonly rows: number; readonly bytes: number }): number {
  return rows / rowsPerUnit + bytes / bytesPerUnit;
}

/** @throws {ServiceError} `validation_error` when a request alone would cost more than any may. */
export function assertAffordable(work: number, path: string): void {
  if (work <= searchWorkMax) return;
  throw invalid(
    path,
    `the request would cost about ${Math.ceil(work)} units of work, and a request may cost ${searchWorkMax}: ask for fewer or shorter queries, or a smaller candidate_k`,
    'too_much_work',
  );
}

/** Refused, for it would have to wait too long behind other requests of its tenant. */
export function tooMuchWaits(work: number, waiting: number): ServiceError {
  return unavailable(
    `the request would cost about ${Math.ceil(work)} units of work; requests of the tenant that are there already cost ${Math.ceil(waiting)}, and ${tenantWorkMax} is the most for all together`,
  );
}
