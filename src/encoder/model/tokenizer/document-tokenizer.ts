/**
 * A worker thread that tokenises documents, so that the event loop has its time for connections and batches. Queries are short:
 * the way to another thread would take longer than their tokens.
 */
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { documentTokens, type DocumentModel, type DocumentTokens } from '../row-spans.ts';
import type { ServedModel } from '../served-model.ts';
import type { TokenizerOptions } from './tokenizer.ts';

/** A model as the worker needs it. */
export interface TokenizedModel {
  readonly documentLead: string;
  readonly options: TokenizerOptions;
}

/** Without a text, the document with this id is not needed any more. */
export interface TokenizerRequest {
  readonly id: number;
  readonly modelIndex: number;
  readonly text?: string;
  readonly tokensMax?: number;
}

export interface TokenizedDocument extends DocumentTokens {
  readonly tokenizeMs: number;
}

export interface TokenizerReply {
  readonly id: number;
  readonly tokens?: TokenizedDocument;
  /** Why there are none. */
  readonly message?: string;
}

/** Tokenises a document of a model, as `documentTokens` does. Rejects with the reason of the signal when it aborts. */
export type DocumentTokenizer = (
  modelIndex: number,
  text: string,
  signal: AbortSignal,
  tokensMax?: number,
) => Promise<TokenizedDocument>;

/** Tokenises in the calling thread, with turns of its event loop in between. */
export function documentTokenizer(models: readonly DocumentModel[]): DocumentTokenizer {
  return async (modelIndex, text, signal, tokensMax) => {
    const startedAt = performance.now();
    const tokens = await documentTokens(models[modelIndex]!, text, signal, tokensMax);
    const tokenizeMs = performance.now() - startedAt;
    // Otherwise all texts that have come already would be tokenised in one turn.
    await turn();
    return { ...tokens, tokenizeMs };
  };
}

/** Starts the thread. `onFatal`: it has ended, and only the end of the process helps. */
export async function startDocumentTokenizer(
  models: readonly Pick<ServedModel, 'rules' | 'tokenizerOptions'>[],
  onFatal: (reason: string) => void,
): Promise<DocumentTokenizer> {
  const entry = new URL(`./document-worker${path.extname(import.meta.filename)}`, import.meta.url);
  const workerData: TokenizedModel[] = models.map(
    ({ rules: { documentLead }, tokenizerOptions: options }) => ({
      documentLead,
      options,
    }),
  );
  const worker = new Worker(entry, { workerData });
  await new Promise<void>((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', () => resolve());
  });
  const open = new Map<number, (reply: TokenizerReply) => void>();
  worker.on('message', (reply: TokenizerReply) => open.get(reply.id)?.(reply));
  worker.on('error', (error) => onFatal(`the tokenizer thread failed: ${error.message}`));
  worker.on('exit', (code) => onFatal(`the tokenizer thread exited with ${code}`));
  let lastId = 0;
  return async (modelIndex, text, signal, tokensMax = Infinity) => {
    signal.throwIfAborted();
    const id = ++lastId;
    return new Promise<TokenizedDocument>((resolve, reject) => {
      const settle = (): void => {
        open.delete(id);
        signal.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        settle();
        worker.postMessage({ id, modelIndex } satisfies TokenizerRequest, []);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort);
      open.set(id, ({ tokens, message }) => {
        settle();
        if (tokens === undefined) reject(new Error(message));
        else resolve(tokens);
      });
      worker.postMessage({ id, modelIndex, text, tokensMax } satisfies TokenizerRequest, []);
    });
  };
}
