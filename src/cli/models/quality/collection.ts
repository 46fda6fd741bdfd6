/**
 * A collection in the layout of BEIR, as token sequences of a model. Documents are cut as in an index of default chunks. All of it is
 * in memory, so its size is bounded.
 */
import { documentSequence, type Sequence } from '../../../encoder/model/colbert-rules.ts';
import { tokenWindows } from '../../../encoder/model/chunker.ts';
import type { ServedModel } from '../../../encoder/model/served-model.ts';
import { chunkingOf } from '../../../service/operations/create-index.ts';
import { corpusOf } from '../../beir/directory.ts';
import { evalFilesOf } from '../../evaluation/eval-files.ts';
import { readJudgements } from '../../evaluation/judgements.ts';
import { readQueries, type Query } from '../../evaluation/queries.ts';
import { inputError } from '../../failure.ts';
import { DocumentReader, isProblem } from '../../import/document.ts';
import { openSource, rowsOf } from '../../import/sources/source.ts';
import { querySequences } from '../f32-rows.ts';

export interface JudgedQuery extends Query {
  /** Document id -> grade. */
  readonly grades: ReadonlyMap<string, number>;
}

export interface Judged {
  readonly directory: string;
  /** The file of the documents. */
  readonly corpus: string;
  readonly queries: readonly JudgedQuery[];
}

export interface Collection {
  readonly queries: readonly JudgedQuery[];
  /** The ids of the documents. */
  readonly documents: readonly string[];
  /** Rows that are no document, such as those without text. */
  readonly leftOut: number;
  /** The chunks of all documents, one document after the other. `document` is the place of its id. */
  readonly chunks: readonly { readonly document: number; readonly sequence: Sequence }[];
}

/** More would take hours to encode. SciFact has 9,185. */
export const chunksMax = 50_000;
/** Tokens of all judged queries together. Each of them is compared with every chunk. */
export const queryTokensMax = 50_000;

/** Finds and reads what is judged. The documents are not read yet. */
export async function readJudged(directory: string): Promise<Judged> {
  const files = evalFilesOf({ directory });
  const corpus = corpusOf(directory);
  const [queries, judgements] = await Promise.all([
    readQueries(files.queries),
    readJudgements(files.judgements),
  ]);
  const judged = queries.flatMap((query) => {
    const grades = judgements.get(query.id);
    return grades === undefined ? [] : [{ ...query, grades }];
  });
  if (judged.length === 0) throw inputError(`${directory}: no query has judgements`);
  return { directory, corpus, queries: judged };
}

/** Reads and tokenises the documents. A `CommandFailure` says what is too large. */
export async function readCollection(
  model: Pick<ServedModel, 'rules' | 'tokenizer' | 'windowTokensMax'>,
  { directory, corpus, queries }: Judged,
  signal: AbortSignal,
): Promise<Collection> {
  assertFewTokens(model, directory, queries);
  const { rules, tokenizer, windowTokensMax } = model;
  const chunking = chunkingOf(model);
  const source = await openSource({ source: corpus, fields: {} }, process.stdin, signal);
  const reader = new DocumentReader();
  const documents: string[] = [];
  const chunks: Collection['chunks'][number][] = [];
  let leftOut = 0;
  for await (const row of rowsOf(source)) {
    signal.throwIfAborted();
    const { item } = reader.read(row);
    if (isProblem(item)) {
      leftOut += 1;
      continue;
    }
    if (reader.repeated > 0)
      throw inputError(`${item.file}:${item.line}: document ${item.docId} appears twice`);
    const ids = tokenizer.encode(rules.documentLead + item.document.text);
    for (const { start, end } of tokenWindows(ids.length, chunking, windowTokensMax)) {
      const sequence = documentSequence(rules, ids.subarray(start, end));
      chunks.push({ document: documents.length, sequence });
    }
    documents.push(item.docId);
    if (chunks.length > chunksMax) {
      throw inputError(
        `--beir: ${directory} has more than ${chunksMax.toLocaleString('en')} chunks of ${chunking.maxTokens} tokens; import a larger collection, and measure it with maxsimd eval`,
      );
    }
  }
  if (chunks.length === 0) throw inputError(`${corpus} has no document with text`);
  return { queries, documents, leftOut, chunks };
}

function assertFewTokens(
  model: Pick<ServedModel, 'rules' | 'tokenizer'>,
  directory: string,
  queries: readonly JudgedQuery[],
): void {
  const sequences = querySequences(
    model,
    queries.map(({ text }) => text),
  );
  const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  if (tokens <= queryTokensMax) return;
  const [had, most] = [tokens, queryTokensMax].map((count) => count.toLocaleString('en'));
  throw inputError(
    `--beir: the judged queries of ${directory} have ${had} tokens together, and at most ${most} are measured here; import the collection, and measure it with maxsimd eval`,
  );
}
