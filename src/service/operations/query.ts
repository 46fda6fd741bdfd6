/** Runs several searches of one index in one request, on one snapshot. Each counts as a search. */
import { assertInvariant } from '../../errors.ts';
import type {
  DocumentResult,
  QueryAnswer,
  QueryRequest,
  QueryResponse,
  RankedResponse,
  RequestContext,
} from '../contract.ts';
import type { OperationDeps } from '../operation-deps.ts';
import { runSearches } from './search.ts';

export async function queryIndex(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  queries: readonly QueryRequest[],
): Promise<QueryResponse> {
  const searches = queries.map((query, place) => ({ ...query, path: `queries.${place}.` }));
  const { answers, usage } = await runSearches(deps, context, indexId, searches);
  return { results: answers.map((answer, place) => answerTo(queries[place], answer)), usage };
}

function answerTo(query: QueryRequest | undefined, { results, usage }: RankedResponse): QueryAnswer {
  assertInvariant(query !== undefined, 'every answer has its query');
  if (!query.groupByDocument) return { results, usage };
  return { documents: documentsOf(results), usage };
}

/** Gathers results that follow each other and are of one document. */
function documentsOf(results: RankedResponse['results']): DocumentResult[] {
  const documents: { docId: string; metadata: string; chunks: RankedResponse['results'][number][] }[] = [];
  for (const result of results) {
    const last = documents.at(-1);
    if (last?.docId === result.docId) last.chunks.push(result);
    else documents.push({ docId: result.docId, metadata: result.metadata, chunks: [result] });
  }
  return documents;
}
