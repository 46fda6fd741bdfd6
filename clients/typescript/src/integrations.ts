/** The common part of the packages for frameworks, `@maxsimd/langchain` and `@maxsimd/llamaindex`. */
import type { Maxsimd } from './client.ts';
import { MaxsimdError } from './errors.ts';
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

/** Documents of one request. */
const rerankedMax = 50;

/** Documents of one search, each with up to ten chunks, that may have components. */
const detailedMax = 10;

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

/** The best passages of the best documents, best first. */
export async function retrieve(
  client: Maxsimd,
  indexId: string,
  { load, textField }: TextSource,
  search: Search,
): Promise<Found[]> {
  if ((load === undefined) === (textField === undefined))
    throw new TypeError('give either load or textField');
  const passages = textField === undefined ? {} : { passage: { from: textField } };
  // Without components there are no highlights.
  const isDetailed = (search.top_k ?? Infinity) <= detailedMax;
  const { results } = await client.search(indexId, {
    ...search,
    ...passages,
    return_components: isDetailed,
  });
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
  const documents = texts.map((text, at) => ({ text, at })).filter(({ text }) => text !== '');
  const ranked = [];
  for (let start = 0; start < documents.length; start += rerankedMax) {
    const part = documents.slice(start, start + rerankedMax);
    const body = { model, query, documents: part.map(({ text }) => text) };
    const answer = await client.request<Reranked>({
      method: 'POST',
      path: ['v2', 'rerank'],
      body,
      isSafe: true,
    });
    for (const { index, relevance_score: score } of answer.results)
      ranked.push({ at: part[index]!.at, score });
  }
  return ranked.toSorted((a, b) => b.score - a.score || a.at - b.at).slice(0, topN);
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
