/** The common part of the packages for frameworks, `@maxsimd/langchain` and `@maxsimd/llamaindex`. */
import type { Maxsimd } from './client.ts';
import { ApiError, MaxsimdError } from './errors.ts';
import type { ImportReport } from './import/import.ts';
import { highlights, passage } from './passages.ts';
import type { Reranked, Result, Search } from './types.ts';

/** Gives the texts that it has, by `doc_id`. A document without a text is left out. */
export type Load = (
  docIds: readonly string[],
) => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;

/** Conditions on metadata, as in the service's own search. */
export type Where = NonNullable<Search['where']>;

/** Where the texts are: in your own store, or in a metadata field of the documents. One of the two is given. */
export interface TextSource {
  readonly load?: Load | undefined;
  readonly textField?: string | undefined;
}

export interface RetrievalOptions extends TextSource {
  /**
   * A metadata field. Documents with the same value there count as one, by the best of them: with `part_of`, the parts that an
   * import with `cut` made of a document.
   */
  readonly groupBy?: string | undefined;
}

export interface Narrowing {
  readonly where?: Where | undefined;
  readonly exact?: boolean | undefined;
}

/** The best passage of a document. */
export interface Found {
  readonly docId: string;
  readonly text: string;
  readonly score: number;
  /** The document's own, with where the passage was found. Positions are those in the whole text. */
  readonly metadata: Record<string, unknown>;
}

/** Fields of the metadata that are for programs, not for a prompt. */
export const places: readonly string[] = ['text_range', 'highlights'];

/** Texts of one rerank request. */
const rerankedMax = 1000;
/** UTF-8 bytes of the texts of one rerank request: some 100,000 tokens, which is what a request may have. */
const rerankedBytes = 400_000;
/** Tokens that count of one text. */
const rerankedTokens = 100_000;
/** UTF-16 units that may count of one text. The service reads so many bytes. */
const rerankedUnits = 100 << 10;

/** Documents of one search, each with up to ten chunks, that may have components. */
const detailedMax = 10;
/** Searches for one grouped retrieval. With 100 results each they reach the greatest `offset`. */
const pagesMax = 10;

/** A search for the best documents. */
export function narrowed(query: string, topK: number, { where, exact }: Narrowing): Search {
  return {
    query,
    top_k: topK,
    group_by_document: true,
    ...(where !== undefined && { where }),
    ...(exact !== undefined && { exact }),
  };
}

/**
 * The best passages of the best documents, best first. Documents with the same value in the metadata field `groupBy` count as
 * one, by the best of them.
 */
export async function retrieve(
  client: Maxsimd,
  indexId: string,
  { load, textField, groupBy }: RetrievalOptions,
  search: Search,
): Promise<Found[]> {
  if ((load === undefined) === (textField === undefined))
    throw new TypeError('give either load or textField');
  const passages = textField === undefined ? {} : { passage: { from: textField } };
  const results = await bestOfGroups(client, indexId, { ...search, ...passages }, groupBy);
  if (textField !== undefined) {
    const shown = results.flatMap((result) => foundInField(result, textField));
    if (results.length > 0 && shown.length === 0)
      throw new MaxsimdError(
        `no result has a passage in the metadata field ${JSON.stringify(textField)}: is it the field that holds the text, as it was upserted?`,
      );
    return shown;
  }
  if (load === undefined || results.length === 0) return [];
  const texts = await load(results.map((result) => result.doc_id));
  return results.flatMap((result) => {
    const text = texts.get(result.doc_id);
    return text === undefined ? [] : [foundIn(text, result)];
  });
}

/** Asks for pages until they hold documents of enough groups. Gives the best document of each. */
async function bestOfGroups(
  client: Maxsimd,
  indexId: string,
  search: Search,
  groupBy: string | undefined,
): Promise<Result[]> {
  const { top_k: groups = detailedMax } = search;
  // The service refuses a number below 1.
  const size = groupBy === undefined || groups < 1 ? groups : Math.max(groups, detailedMax);
  // Without components there are no highlights.
  const detailed = { ...search, top_k: size, return_components: size <= detailedMax };
  const best = new Map<string, Result>();
  const pages = groupBy === undefined ? 1 : pagesMax;
  for (let page = 0; page < pages && (page === 0 || best.size < groups); page++) {
    const offset = page === 0 ? {} : { offset: page * size };
    const { results } = await client.search(indexId, { ...detailed, ...offset });
    for (const result of results) {
      const value = groupBy === undefined ? undefined : result.metadata[groupBy];
      const group = JSON.stringify(isGroup(value) ? { value } : { id: result.doc_id });
      const before = best.get(group);
      if (before === undefined || result.score > before.score) best.set(group, result);
    }
    if (results.length < size) break;
  }
  // A later page looks at more candidates, and may have a better one.
  return [...best.values()].toSorted((one, other) => other.score - one.score).slice(0, groups);
}

function isGroup(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

/** A document without a passage is left out. The passage stands for the text in the metadata. */
function foundInField(result: Result, textField: string): Found[] {
  if (!result.passage) return [];
  const { text, highlights: words = [] } = result.passage;
  const { [textField]: _text, ...metadata } = result.metadata;
  return [found(result, text, { ...metadata, ...placesOf(result), highlights: words })];
}

function foundIn(text: string, result: Result): Found {
  const place = { ...placesOf(result), highlights: highlights(text, result) };
  return found(result, passage(text, result), { ...result.metadata, ...place });
}

function found({ doc_id: docId, score }: Result, text: string, metadata: Found['metadata']): Found {
  return { docId, text, score, metadata };
}

function placesOf({ doc_id, chunk_id, chunk_index, score, text_range }: Result) {
  return { doc_id, chunk_id, chunk_index, score, text_range: text_range ?? null };
}

export interface RerankOptions {
  readonly client: Maxsimd;
  /** By default 10. */
  readonly topN?: number | undefined;
  /** By default the default model of the service. */
  readonly model?: string | undefined;
}

/**
 * Positions and scores of the `topN` best texts, best first. An empty text cannot be ranked. Long lists take several
 * requests. Their scores compare, because query and model are the same.
 */
export async function rerank(
  { client, topN = 10, model = 'default' }: RerankOptions,
  query: string,
  texts: readonly string[],
): Promise<{ readonly at: number; readonly score: number }[]> {
  const lists = listsOf(texts);
  const ranked = [];
  for (let list = lists.pop(); list !== undefined; list = lists.pop()) {
    const documents = list.map(({ text }) => text);
    const body = { model, query, documents, max_tokens_per_doc: rerankedTokens };
    try {
      const { results } = await client.request<Reranked>({
        method: 'POST',
        path: ['v2', 'rerank'],
        body,
        isSafe: true,
      });
      for (const { index, relevance_score: score } of results) ranked.push({ at: list[index]!.at, score });
    } catch (error) {
      if (list.length === 1 || !isTooLong(error)) throw error;
      const middle = list.length >> 1;
      lists.push(list.slice(0, middle), list.slice(middle));
    }
  }
  return ranked.toSorted((a, b) => b.score - a.score || a.at - b.at).slice(0, topN);
}

/** Whether the service finds that a list has too many texts or tokens. */
function isTooLong(error: unknown): boolean {
  return error instanceof ApiError && error.issues.some(({ path }) => path === 'documents');
}

/** The texts of each request that is likely to fit, with their positions. An empty text is in none. */
function listsOf(texts: readonly string[]): { readonly text: string; readonly at: number }[][] {
  const lists: { readonly text: string; readonly at: number }[][] = [];
  let left = 0;
  for (const [at, whole] of texts.entries()) {
    if (whole === '') continue;
    const text = whole.slice(0, rerankedUnits);
    const bytes = Buffer.byteLength(text);
    if (bytes > left || lists.at(-1)?.length === rerankedMax) {
      lists.push([]);
      left = rerankedBytes;
    }
    lists.at(-1)!.push({ text, at });
    left -= bytes;
  }
  return lists;
}

/** Throws if the service refused documents of an import. */
export function checkStored({ failed }: ImportReport): void {
  if (failed.length === 0) return;
  const reasons = failed.slice(0, 5).map(({ doc_id, error }) => `${doc_id}: ${error}`);
  throw new MaxsimdError(`${failed.length} documents were refused and are not stored: ${reasons.join('; ')}`);
}

/** Throws for parameters that a program without types passes. */
export function refuseUnknown(given: object, known: readonly string[] = []): void {
  const unknown = Object.keys(given).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`unknown parameters: ${unknown.join(', ')}`);
}
