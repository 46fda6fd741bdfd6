/**
 * Sends batches with bounded parallelism and keeps the checkpoint. Batches are settled in the order of the
 * input whatever order they end in, so the position is always a prefix. A document identifier is in flight
 * once only: of two rows with the same one, the later wins, as it would in a sequential import.
 *
 * Parallelism follows the service: one less after each `concurrency_limit_exceeded`, one more after a row of
 * successes, never above what was asked.
 */
import type { ApiClient } from '../api/client.ts';
import type { Batch } from './batches.ts';
import type { ImportPosition } from './checkpoint.ts';
import type { DocumentProblem } from './document.ts';
import { addTokens } from './token-tally.ts';
import { upsertBatch, type BatchOutcome } from './upsert-batch.ts';

const successesPerStepUp = 20;

/** How many requests may be under way. */
export class Parallelism {
  readonly #max: number;
  #current: number;
  #successes = 0;

  constructor(max: number) {
    this.#max = max;
    this.#current = max;
  }

  get current(): number {
    return this.#current;
  }

  refused(): void {
    this.#current = Math.max(1, this.#current - 1);
    this.#successes = 0;
  }

  succeeded(): void {
    this.#successes += 1;
    if (this.#successes < successesPerStepUp) return;
    this.#successes = 0;
    this.#current = Math.min(this.#max, this.#current + 1);
  }
}

export interface ImportRun {
  readonly client: ApiClient;
  readonly indexId: string;
  readonly batches: AsyncGenerator<Batch>;
  readonly parallelism: Parallelism;
  readonly start: ImportPosition;
  /** Ends the import with its reason; what is under way is abandoned. */
  readonly signal: AbortSignal;
  /** Called in the order of the input, each time the settled prefix grows. */
  readonly onSettled: (position: ImportPosition, batch: Batch, problems: readonly DocumentProblem[]) => void;
}

interface Flight {
  readonly batch: Batch;
  readonly docIds: ReadonlySet<string>;
  outcome: BatchOutcome | undefined;
  landed: Promise<void>;
}

/**
 * Rejects with the first failure that ends the import. A failed request abandons those beside it; an input
 * that breaks off does not: what was sent of it is settled first.
 */
export async function runImport(run: ImportRun): Promise<ImportPosition> {
  const abort = new AbortController();
  /** In the order of the input; landed ones stay until everything before them has landed. */
  const flights: Flight[] = [];
  let position = run.start;
  let stopped: { readonly error: unknown } | undefined;

  const land = async (flight: Flight): Promise<void> => {
    try {
      flight.outcome = await upsertBatch(run.client, run.indexId, flight.batch.documents, abort.signal);
      run.parallelism.succeeded();
      settlePrefix();
    } catch (error) {
      stopped ??= { error };
      abort.abort();
      throw error;
    }
  };

  const launch = (batch: Batch): void => {
    const docIds = new Set(batch.documents.map((document) => document.docId));
    const flight: Flight = { batch, docIds, outcome: undefined, landed: Promise.resolve() };
    flights.push(flight);
    flight.landed = land(flight);
    // Awaited below; this keeps a failure that comes first from counting as unhandled.
    flight.landed.catch(() => {});
  };

  const settlePrefix = (): void => {
    for (let head = flights[0]; head?.outcome !== undefined; head = flights[0]) {
      flights.shift();
      const problems = [...head.batch.problems, ...head.outcome.problems].toSorted((a, b) => a.line - b.line);
      position = {
        rows: head.batch.lastRow,
        done: position.done + head.outcome.done,
        failed: position.failed + problems.length,
        tokens: addTokens(position.tokens, head.outcome.tokens),
      };
      run.onSettled(position, head.batch, problems);
    }
  };

  const flying = (): readonly Flight[] => flights.filter((flight) => flight.outcome === undefined);
  const blocked = (batch: Batch): boolean => {
    // Landed flights that wait for an earlier one count too: they bound the memory of a slow head.
    if (flights.length >= 4 * run.parallelism.current || flying().length >= run.parallelism.current)
      return true;
    return flying().some((flight) => batch.documents.some((document) => flight.docIds.has(document.docId)));
  };

  // An input that is standard input may not come to an end by itself.
  const interrupted = Promise.withResolvers<never>();
  interrupted.promise.catch(() => {});
  const interrupt = (): void => {
    stopped ??= { error: run.signal.reason };
    abort.abort();
    interrupted.reject(run.signal.reason);
  };
  if (run.signal.aborted) interrupt();
  run.signal.addEventListener('abort', interrupt, { once: true });
  try {
    for (;;) {
      const next = await Promise.race([run.batches.next(), interrupted.promise]);
      if (next.done === true) break;
      while (blocked(next.value)) await Promise.race(flying().map((flight) => flight.landed));
      launch(next.value);
    }
    await Promise.all(flights.map((flight) => flight.landed));
  } catch (error) {
    await Promise.allSettled(flights.map((flight) => flight.landed));
    throw stopped?.error ?? error;
  }
  return position;
}
