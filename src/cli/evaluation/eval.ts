/**
 * `maxsimd eval`: retrieval quality and latency of an index over a set of queries, measured
 * through the HTTP API as a client sees it.
 *
 * A search returns chunks. A document counts once, at the rank of its best chunk, and so do the parts that an import with
 * `--cut` made of a document. A search returns at most 100 chunks, so
 * an index with several chunks per document yields fewer than 100 documents per query. recall@100 is then measured over
 * these documents, and the report gives their number.
 */
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import { sourceOf } from '../../../clients/typescript/src/import/cut.ts';
import { ApiError } from '../../../clients/typescript/src/errors.ts';
import { clientOf, rateLimitHint, requireIndex, type Endpoint } from '../client.ts';
import { inputError } from '../failure.ts';
import { distribution, mean } from './distribution.ts';
import { evalFilesOf, type EvalChoice } from './eval-files.ts';
import { readJudgements, type Judgements } from './judgements.ts';
import { ndcg } from './ndcg.ts';
import { readQueries, type Query } from './queries.ts';
import { recall } from './recall.ts';
import { fields, type CommandResult } from '../output.ts';
import { startProgress } from '../progress.ts';

export interface EvalCommand {
  readonly endpoint: Endpoint;
  readonly choice: EvalChoice;
  readonly indexName: string;
  readonly candidateK: number;
  /** Searches at once. The latencies are measured under this load. */
  readonly concurrency: number;
  readonly stderr: NodeJS.WriteStream;
}

const topK = 100;
const ndcgCutoff = 10;
const recallCutoff = 100;

interface Answered {
  readonly ndcg: number;
  readonly recall: number;
  readonly documents: number;
  readonly latencyMs: number;
  /** Whether the document with the query's id was found and left out. */
  readonly foundItself: boolean;
}

/** The service refused the text of the query, so nothing was found. */
interface Refused {
  readonly queryId: string;
  readonly error: string;
}

type Measured = Answered | Refused;

export async function evaluate(command: EvalCommand): Promise<CommandResult> {
  const files = evalFilesOf(command.choice);
  const [queries, judgements] = await Promise.all([
    readQueries(files.queries),
    readJudgements(files.judgements),
  ]);
  const judged = queries.filter((query) => judgements.has(query.id));
  if (judged.length === 0) throw inputError('no query has judgements');
  const progress = startProgress(command.stderr, judged.length);
  let answered = 0;
  let hint: string | undefined;
  const sayHint = (): void => {
    if (hint !== undefined) progress.say(hint);
    hint = undefined;
  };
  const client = clientOf(command.endpoint, 60_000, {
    onRetry: (error, delayMs) => {
      if (error.code === 'rate_limit_exceeded') sayHint();
      const seconds = Math.ceil(delayMs / 1000);
      progress.update(answered, `${answered} answered, waiting ${seconds} s: ${error.code}`);
    },
  });
  const startedMs = performance.now();
  try {
    const index = await requireIndex(client, command.indexName);
    const usage = await client.usage();
    hint = rateLimitHint(usage, judged.length);
    // The limit will hold this up, so say it at once.
    if (judged.length > usage.limits.requests_per_minute) sayHint();
    const measure = measurement(client, index.id, command.candidateK, judgements);
    const measured = await mapInParallel(judged, command.concurrency, async (query, signal) => {
      const one = await measure(query, signal);
      answered += 1;
      progress.update(answered, `${answered} answered`);
      return one;
    });
    return resultOf(command, measured, {
      judgementFiles: files.judgements,
      judgedQueries: judgements.size,
      seconds: (performance.now() - startedMs) / 1000,
    });
  } finally {
    progress.stop();
  }
}

function measurement(client: Maxsimd, indexId: string, candidateK: number, judgements: Judgements) {
  return async (query: Query, signal: AbortSignal): Promise<Measured> => {
    let latencyMs = 0;
    let results: Awaited<ReturnType<Maxsimd['search']>>['results'];
    try {
      ({ results } = await client.search(
        indexId,
        { query: query.text, top_k: topK, candidate_k: candidateK },
        { signal, onAnswer: (answer) => void ({ latencyMs } = answer) },
      ));
    } catch (error) {
      const issue = error instanceof ApiError ? error.issues.find(({ path }) => path === 'query') : undefined;
      if (issue === undefined) throw error;
      return { queryId: query.id, error: issue.message };
    }
    const grades = judgements.get(query.id) ?? new Map<string, number>();
    const ranking = new Set(results.map(({ doc_id: docId, metadata }) => sourceOf(docId, metadata).docId));
    // In some sets the queries are documents, which nobody judged for themselves.
    const foundItself = !grades.has(query.id) && ranking.delete(query.id);
    const documents = [...ranking];
    return {
      ndcg: ndcg(documents, grades, ndcgCutoff),
      recall: recall(documents, grades, recallCutoff),
      documents: documents.length,
      latencyMs,
      foundItself,
    };
  };
}

/**
 * Maps items, `concurrency` at a time. The first failure stops the rest. The results have the order of the items, so sums
 * over them are the same in every run.
 */
async function mapInParallel<T, R>(
  items: readonly T[],
  concurrency: number,
  work: (item: T, signal: AbortSignal) => Promise<R>,
): Promise<readonly R[]> {
  const abort = new AbortController();
  const queue = items.entries();
  const results: R[] = [];
  const lane = async (): Promise<void> => {
    for (const [position, item] of queue) results[position] = await work(item, abort.signal);
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, lane));
  } catch (error) {
    abort.abort();
    throw error;
  }
  return results;
}

interface EvalRun {
  readonly judgementFiles: readonly string[];
  readonly judgedQueries: number;
  readonly seconds: number;
}

/** Refused queries count 0. */
function resultOf(command: EvalCommand, measured: readonly Measured[], run: EvalRun): CommandResult {
  const answered = measured.filter((item): item is Answered => 'ndcg' in item);
  const refused = measured.filter((item): item is Refused => 'error' in item);
  if (answered.length === 0)
    throw inputError(`every query was refused; query ${refused[0]?.queryId}: ${refused[0]?.error}`);
  const ndcgMean = mean(measured.map((item) => ('ndcg' in item ? item.ndcg : 0)));
  const recallMean = mean(measured.map((item) => ('recall' in item ? item.recall : 0)));
  const latency = distribution(answered.map((item) => item.latencyMs));
  const documents = answered.map((item) => item.documents);
  const documentsMean = mean(documents);
  // `Math.min(...documents)` fails for very many queries.
  const documentsMin = documents.reduce((least, count) => Math.min(least, count), Infinity);
  const missing = run.judgedQueries - measured.length;
  const foundThemselves = answered.filter((item) => item.foundItself).length;
  const ms = (value: number): string => value.toFixed(1);
  return {
    document: {
      index: command.indexName,
      judgements: run.judgementFiles,
      queries: measured.length,
      judged_queries_missing: missing,
      queries_refused: refused.map(({ queryId, error }) => ({ query_id: queryId, error })),
      own_documents_left_out: foundThemselves,
      top_k: topK,
      candidate_k: command.candidateK,
      concurrency: command.concurrency,
      ndcg_at_10: ndcgMean,
      recall_at_100: recallMean,
      latency_ms: latency,
      documents_per_query: { mean: documentsMean, min: documentsMin },
      seconds: Number(run.seconds.toFixed(3)),
    },
    text: [
      fields([
        ['index', command.indexName],
        ['judgements', run.judgementFiles.join(', ')],
        [
          'queries',
          `${measured.length}${missing === 0 ? '' : ` (${missing} judged ones are not among the queries)`}`,
        ],
        ...(refused.length === 0 ? [] : [['refused', refusedText(refused)] as const]),
        ...(foundThemselves === 0
          ? []
          : [['left out', `${foundThemselves} documents with the id of their query, not judged`] as const]),
        ['nDCG@10', ndcgMean.toFixed(4)],
        ['recall@100', recallMean.toFixed(4)],
        [
          'latency',
          `mean ${ms(latency.mean)}, p50 ${ms(latency.p50)}, p90 ${ms(latency.p90)}, p95 ${ms(latency.p95)}, p99 ${ms(latency.p99)}, max ${ms(latency.max)} ms at ${command.concurrency} at a time`,
        ],
        ['documents', `${documentsMean.toFixed(1)} a query on average, ${documentsMin} at least`],
      ]),
      ...(documentsMin < recallCutoff
        ? [
            `A search returns at most ${topK} chunks, so recall@${recallCutoff} is computed over their documents.`,
          ]
        : []),
    ].join('\n'),
  };
}

const refusedShownMax = 20;

function refusedText(refused: readonly Refused[]): string {
  const shown = refused.slice(0, refusedShownMax).map(({ queryId, error }) => `${queryId} (${error})`);
  const more = refused.length > shown.length ? ', ...' : '';
  return `${refused.length} queries, which count 0: ${shown.join(', ')}${more}`;
}
