/**
 * One batch against the service: every document ends as done or as a problem, or the whole import must
 * stop. A request refused for some of its documents (422 whose issues name them) is sent again without
 * them, because one bad document must not take the 49 beside it down.
 */
import type { ApiClient, UpsertAnswer } from '../api/client.ts';
import { ApiFailure } from '../api/failure.ts';
import { CommandFailure } from '../failure.ts';
import type { DocumentProblem, InputDocument } from './document.ts';
import { addTokens, noTokens, type TokenTally } from './token-tally.ts';

export interface BatchOutcome {
  readonly done: number;
  readonly problems: readonly DocumentProblem[];
  readonly tokens: TokenTally;
}

/** Rejects when going on with further batches makes no sense. */
export async function upsertBatch(
  client: ApiClient,
  indexId: string,
  documents: readonly InputDocument[],
  signal: AbortSignal,
): Promise<BatchOutcome> {
  const problems: DocumentProblem[] = [];
  let pending = documents;
  while (pending.length > 0) {
    try {
      const answer = await client.upsert(
        indexId,
        pending.map((document) => document.json),
        signal,
      );
      if (answer.upserted_documents + answer.failed.length !== pending.length) {
        throw new CommandFailure(
          'unexpected_response',
          'the answer to an upsert does not account for every document',
        );
      }
      const sent = new Map(pending.map((document) => [document.docId, document]));
      problems.push(
        ...answer.failed.map((item) => ({
          file: sent.get(item.doc_id)?.file ?? '',
          line: sent.get(item.doc_id)?.line ?? 0,
          docId: item.doc_id,
          error: item.error,
        })),
      );
      return { done: answer.upserted_documents, problems, tokens: tokensOf(answer) };
    } catch (error) {
      if (!(error instanceof ApiFailure) || !concernsDocuments(error)) throw error;
      const refused = refusedDocuments(error, pending.length);
      if (error.status === 422 && refused.size === 0)
        await stopAtAllowance(client, error, pending.length, signal);
      const errorOf = (index: number): string => refused.get(index) ?? error.message;
      const rejected = pending.filter((_, index) => refused.size === 0 || refused.has(index));
      problems.push(
        ...rejected.map((document) => ({
          file: document.file,
          line: document.line,
          docId: document.docId,
          error: errorOf(pending.indexOf(document)),
        })),
      );
      pending = pending.filter((document) => !rejected.includes(document));
    }
  }
  return { done: 0, problems, tokens: noTokens };
}

function tokensOf({ unknown_tokens: unknown, usage }: UpsertAnswer): TokenTally {
  return unknown
    .map((item) => ({
      inputTokens: 0,
      unknownTokens: item.unknown_tokens,
      documents: 1,
      worst: [{ docId: item.doc_id, share: item.unknown_tokens / item.input_tokens }],
    }))
    .reduce(addTokens, { ...noTokens, inputTokens: usage.input_tokens });
}

/** Whether the failure lies in what was sent, rather than in who sends it or whether anyone answers. */
function concernsDocuments(failure: ApiFailure): boolean {
  return failure.status === 422 || failure.status === 413 || failure.kind === 'broken';
}

/**
 * A request over the stored-document allowance is refused as a whole, and so would be most that follow: the
 * import stops, as it does at the token allowance, and goes on once the limit is raised.
 */
async function stopAtAllowance(
  client: ApiClient,
  failure: ApiFailure,
  documents: number,
  signal: AbortSignal,
): Promise<void> {
  const { remaining } = await client.usage(signal);
  if (remaining.documents < documents) throw failure;
}

/** Position in the request -> what is wrong, from issue paths such as `documents.3.text`. */
function refusedDocuments(failure: ApiFailure, count: number): ReadonlyMap<number, string> {
  const refused = new Map<number, string>();
  for (const issue of failure.issues) {
    const match = /^documents\.(\d+)(?:\.|$)/.exec(issue.path);
    const index = match === null ? Number.NaN : Number(match[1]);
    if (index < count && !refused.has(index)) refused.set(index, `${issue.path}: ${issue.message}`);
  }
  return refused;
}
