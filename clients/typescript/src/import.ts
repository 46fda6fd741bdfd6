/**
 * Sends any number of documents in batches that fit one request (50 documents, 5 MiB), several at once. Documents that
 * are refused alone are collected, and those beside them go on. A `doc_id` that comes again waits for the one before it,
 * so that the last one stays.
 */
import { jsonText } from './encoding.ts';
import { ApiError, ImportError } from './errors.ts';
import type { Document, UpsertResult } from './types.ts';

const documentsMax = 50;
const bodyBytesMax = 5 * 1024 * 1024;
const envelope = (documents: readonly string[]): string => `{"documents":[${documents.join(',')}]}`;
const envelopeBytes = Buffer.byteLength(envelope([]));

export interface ImportOptions {
  /** Batches in flight; no more than the tenant's `max_concurrent_requests`. 2 where none is given. */
  readonly concurrency?: number;
  /** After each batch. */
  readonly onProgress?: (progress: ImportProgress) => void;
  readonly signal?: AbortSignal;
}

export interface ImportProgress {
  /** Stored. */
  readonly documents: number;
  readonly chunks: number;
  /** Refused. */
  readonly failed: number;
}

export interface ImportFailure {
  readonly doc_id: string;
  /** For people. */
  readonly error: string;
}

export interface ImportReport {
  readonly documents: number;
  readonly chunks: number;
  readonly failed: readonly ImportFailure[];
}

/** Sends one JSON text; calls back when the concurrency limit refuses it. */
export type SendBatch = (
  json: string,
  signal: AbortSignal,
  onConcurrencyLimit: () => void,
) => Promise<UpsertResult>;

interface Item {
  readonly docId: string;
  readonly json: string;
}

export async function importDocuments(
  send: SendBatch,
  documents: Iterable<Document> | AsyncIterable<Document>,
  options: ImportOptions,
): Promise<ImportReport> {
  const run = new Import(send, options);
  try {
    for await (const document of documents) await run.take(document);
    return await run.end();
  } catch (error) {
    return run.stop(error);
  }
}

class Import {
  readonly #send: SendBatch;
  readonly #options: ImportOptions;
  readonly #report = { documents: 0, chunks: 0, failed: [] as ImportFailure[] };
  readonly #stop = new AbortController();
  /** Batches that are being sent, with the ids in them. None of these promises rejects. */
  readonly #inFlight = new Map<Promise<void>, ReadonlySet<string>>();
  #concurrency: number;
  #failure: { readonly error: unknown } | undefined;
  #batch = new Map<string, Item>();
  #bytes = envelopeBytes;

  constructor(send: SendBatch, options: ImportOptions) {
    this.#send = send;
    this.#options = options;
    this.#concurrency = Math.max(1, options.concurrency ?? 2);
  }

  async take(document: Document): Promise<void> {
    this.#throwFailure();
    const item = { docId: document.doc_id, json: jsonText(document) };
    const itemBytes = Buffer.byteLength(item.json) + 1;
    if (this.#batch.has(item.docId)) await this.#start();
    if ([...this.#inFlight.values()].some((ids) => ids.has(item.docId))) await this.#settle();
    if (this.#batch.size === documentsMax || this.#bytes + itemBytes > bodyBytesMax) await this.#start();
    this.#batch.set(item.docId, item);
    this.#bytes += itemBytes;
  }

  async end(): Promise<ImportReport> {
    await this.#start();
    await this.#settle();
    return this.#report;
  }

  /** Rejects with the first failure, once nothing is in flight. */
  async stop(cause: unknown): Promise<never> {
    this.#stop.abort();
    await Promise.all(this.#inFlight.keys());
    this.#options.signal?.throwIfAborted();
    throw new ImportError(this.#failure?.error ?? cause, this.#report);
  }

  async #start(): Promise<void> {
    if (this.#batch.size === 0) return;
    while (this.#inFlight.size >= this.#concurrency) await Promise.race(this.#inFlight.keys());
    this.#throwFailure();
    const task = this.#upsert([...this.#batch.values()]).finally(() => this.#inFlight.delete(task));
    this.#inFlight.set(task, new Set(this.#batch.keys()));
    this.#batch = new Map();
    this.#bytes = envelopeBytes;
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#inFlight.keys());
    this.#throwFailure();
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    this.#options.signal?.throwIfAborted();
  }

  async #upsert(items: readonly Item[]): Promise<void> {
    const { signal, onProgress } = this.#options;
    const given = signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]);
    try {
      const refused = await this.#upsertRest(items, given);
      this.#report.failed.push(...refused);
      const { documents, chunks, failed } = this.#report;
      onProgress?.({ documents, chunks, failed: failed.length });
    } catch (error) {
      this.#failure ??= { error };
      this.#stop.abort();
    }
  }

  /** Sends the items until none is left that the service refuses alone; returns those that it refused. */
  async #upsertRest(items: readonly Item[], signal: AbortSignal): Promise<readonly ImportFailure[]> {
    const failures: ImportFailure[] = [];
    for (let rest = items; rest.length > 0;) {
      try {
        const json = envelope(rest.map((item) => item.json));
        const slower = (): void => void (this.#concurrency = Math.max(1, this.#concurrency - 1));
        const answer = await this.#send(json, signal, slower);
        this.#report.documents += answer.upserted_documents;
        this.#report.chunks += answer.upserted_chunks;
        return [...failures, ...answer.failed];
      } catch (error) {
        const refused = refusedItems(error, rest);
        if (refused.size === 0) throw error;
        for (const [item, message] of refused) failures.push({ doc_id: item.docId, error: message });
        rest = rest.filter((item) => !refused.has(item));
      }
    }
    return failures;
  }
}

/** Documents that the issues of a refused request name, each with what is wrong. */
function refusedItems(error: unknown, items: readonly Item[]): ReadonlyMap<Item, string> {
  const refused = new Map<Item, string>();
  if (!(error instanceof ApiError)) return refused;
  if (error.status === 413 && items.length === 1) refused.set(items[0]!, error.message);
  if (error.status !== 422) return refused;
  for (const issue of error.issues) {
    const [, position] = /^documents\.(\d+)(?:\.|$)/.exec(issue.path) ?? [];
    const item = position === undefined ? undefined : items[Number(position)];
    if (item !== undefined && !refused.has(item)) refused.set(item, `${issue.path}: ${issue.message}`);
  }
  return refused;
}
