/** Runs one or several searches of an index in one request, on one snapshot. Each counts as a search. */
import { assertInvariant } from '../../errors.ts';
import type {
  DocumentResult,
  QueryAnswer,
  QueryResponse,
  RankedResponse,
  RequestContext,
  SearchRequest,
} from '../contract.ts';
import type { OperationDeps } from '../operation-deps.ts';
import { runSearches } from './search.ts';

/** A grouped search answers with the best chunk of each document, which holds the others. */
export async function searchIndex(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  request: SearchRequest,
): Promise<RankedResponse> {
  const { answers } = await runSearches(deps, context, indexId, [{ ...request, path: '' }]);
  const [only] = answers;
  assertInvariant(only !== undefined, 'a search has an answer');
  if (request.groupByDocument !== true) return only;
  const results = documentsOf(only.results).flatMap(({ chunks }) =>
    chunks.slice(0, 1).map((best) => ({ ...best, chunks })),
  );
  return { ...only, results };
}

export async function queryIndex(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  queries: readonly SearchRequest[],
): Promise<QueryResponse> {
  const searches = queries.map((query, place) => ({ ...query, path: `queries.${place}.` }));
  const { answers, usage } = await runSearches(deps, context, indexId, searches);
  return { results: answers.map((answer, place) => answerTo(queries[place], answer)), usage };
}

function answerTo(query: SearchRequest | undefined, answer: RankedResponse): QueryAnswer {
  assertInvariant(query !== undefined, 'every answer has its query');
  if (query.groupByDocument !== true) return answer;
  const { results, ...rest } = answer;
  return { ...rest, documents: documentsOf(results) };
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
