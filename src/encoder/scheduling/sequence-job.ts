/** A job of one text: every query, and work of the encoder itself. */
import type { Sequence } from '../model/colbert-rules.ts';
import { EncoderFailure, TextRefused } from './encoder-failure.ts';
import type { Entry, EntryRun, Job } from './scheduler.ts';
import type { BatchKind, BatchOutput } from '../inference/session-protocol.ts';

export interface SequenceJobOptions {
  readonly kind: BatchKind;
  readonly modelIndex: number;
  readonly tenantId: string;
  readonly deadlineMs: number;
  readonly sequence: Sequence;
  readonly signal: AbortSignal;
  readonly isInternal: boolean;
}

export interface SequenceDone {
  readonly rows: BatchOutput;
  readonly queueMs: number;
  readonly runMs: number;
  readonly rowsMs: number;
}

export class SequenceJob implements Job {
  readonly kind: BatchKind;
  readonly modelIndex: number;
  readonly tenantId: string;
  readonly deadlineMs: number;
  readonly isInternal: boolean;
  readonly #settled = Promise.withResolvers<SequenceDone>();
  /** The rows, or the failure that ended the job. */
  readonly done = this.#settled.promise;
  readonly #signal: AbortSignal;
  readonly #startedAt = performance.now();
  #entry: Entry | undefined;

  constructor(options: SequenceJobOptions) {
    this.kind = options.kind;
    this.modelIndex = options.modelIndex;
    this.tenantId = options.tenantId;
    this.deadlineMs = options.deadlineMs;
    this.isInternal = options.isInternal;
    this.#signal = options.signal;
    this.#entry = { sequence: options.sequence, position: 0 };
  }

  get cancelled(): boolean {
    return this.#signal.aborted;
  }

  get exhausted(): boolean {
    return this.#entry === undefined;
  }

  peek(offset: number): Entry | undefined {
    return offset === 0 ? this.#entry : undefined;
  }

  take(): void {
    this.#entry = undefined;
  }

  drop(reason: 'cancelled' | 'expired'): void {
    const kind = reason === 'expired' ? 'deadline' : 'cancelled';
    this.fail(new EncoderFailure(kind, `the ${this.kind} was ${reason} in the queue`));
  }

  deliver(_: Entry, rows: BatchOutput, { startedAt, runMs, rowsMs }: EntryRun): void {
    this.#settled.resolve({ rows, queueMs: Math.max(0, startedAt - this.#startedAt), runMs, rowsMs });
  }

  refuse(_: Entry, problem: Error): void {
    this.fail(new TextRefused(problem.message, { cause: problem }));
  }

  fail(error: Error): void {
    this.#settled.reject(error);
  }
}
