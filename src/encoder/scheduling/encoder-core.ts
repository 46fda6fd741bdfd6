/**
 * The encoder without its transport: it tokenises, admits, schedules and runs texts, and returns their rows. It knows no gRPC.
 * Failures are `EncoderFailure`s, which the transport turns into statuses.
 */
import { rowBytes, rowsLeft, storedRowBytes } from '../../contracts/row-shape.ts';
import { setImmediate as turn } from 'node:timers/promises';
import { assertInvariant } from '../../errors.ts';
import { paddedTexts } from './batch-shape.ts';
import { chunkingProblem } from '../model/chunker.ts';
import { querySequence, type Sequence } from '../model/colbert-rules.ts';
import { queryTokens, spansOfChunk, type LocatedChunk } from '../model/row-spans.ts';
import { documentTokenizer, type DocumentTokenizer } from '../model/tokenizer/document-tokenizer.ts';
import type { ChunkingParameters, EncodeTimings } from '../protocol/contract.ts';
import { DocumentIntake } from './document-intake.ts';
import { DocumentJob, type DocumentPart } from './document-job.ts';
import { EncoderFailure } from './encoder-failure.ts';
import { areFinite } from '../protocol/finite.ts';
import type { Spans } from '../protocol/row-places.ts';
import type { TokenCut } from '../protocol/token-cut.ts';
import { type BatchPlan, type Reservation, Scheduler, type SchedulerOptions } from './scheduler.ts';
import { type SequenceDone, SequenceJob, type SequenceJobOptions } from './sequence-job.ts';
import type { ServedModel } from '../model/served-model.ts';
import type { SessionPool } from '../inference/session-pool.ts';
import type { BatchKind, BatchMessage, BatchOutput } from '../inference/session-protocol.ts';
import { StageTimes } from './stage-times.ts';

/** The end of a request. */
export interface CallLimits {
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

export interface EncodeRequest extends CallLimits {
  readonly model: { readonly name: string; readonly version: string };
  readonly tenantId: string;
}

export interface DocumentsRequest extends EncodeRequest {
  readonly chunking: ChunkingParameters;
  /** Absent = the texts are encoded whole. */
  readonly cut?: TokenCut;
}

export interface QueryRows {
  /** f32 [rows x dim], multiplied by the query weights. */
  readonly vectors: Float32Array;
  /** f32 [rows]. */
  readonly offsets: Float32Array;
}

/** Documents that are tokenised and admitted, and wait for `run`. */
export interface AdmittedDocuments {
  readonly tokenCounts: Uint32Array;
  /** How many of them stand for text that the vocabulary does not have. */
  readonly unknownCounts: Uint32Array;
  /** Tokens of the whole texts, if some were to be cut. */
  readonly wholeCounts: Uint32Array | undefined;
  /** Encodes the documents and writes all parts. Rejects with an `EncoderFailure`. */
  run(write: (part: DocumentPart) => Promise<void>): Promise<void>;
  /** Frees the place in the queue. Idempotent. */
  release(): void;
}

/** The methods of the sessions that the core uses. */
export type InferencePool = Pick<SessionPool, 'roomFor' | 'run' | 'workers'>;

/** A request is refused when its work would take more than this times the time until its deadline. */
const hopelessFactor = 1.5;

/** A batch with at least this share of the document budget shows the rate of a full queue. */
const tellingShare = 0.5;

export class EncoderCore {
  readonly models: readonly ServedModel[];
  readonly #pool: InferencePool;
  readonly #scheduler: Scheduler;
  readonly #stageTimes = new StageTimes();
  /** Lengths and numbers of texts come from a small set: on a GPU. */
  readonly #fixedShapes: boolean;
  /** Single texts of failed batches. They run before queued texts. */
  readonly #retries: BatchPlan[] = [];
  #runningBatches = 0;
  /** Padded tokens per second of the whole pool, smoothed. Undefined before the first batch. */
  #tokensPerSecond: number | undefined;

  readonly #onBroken: (reason: string) => void;

  readonly #tokenize: DocumentTokenizer;

  /**
   * `onBroken`: called when a model does not work any more. A new process may help. `tokenize`: absent, documents are tokenised on
   * this thread.
   */
  constructor(
    models: readonly ServedModel[],
    pool: InferencePool,
    options: SchedulerOptions,
    onBroken: (reason: string) => void = () => undefined,
    tokenize: DocumentTokenizer = documentTokenizer(models),
  ) {
    this.models = models;
    this.#pool = pool;
    this.#onBroken = onBroken;
    this.#tokenize = tokenize;
    this.#scheduler = new Scheduler(options, pool.workers);
    this.#fixedShapes = options.lengthStep > 1;
  }

  statistics() {
    return {
      ...this.#scheduler.statistics(),
      tokensPerSecond: this.#tokensPerSecond ?? 0,
      stages: this.#stageTimes.snapshot(),
    };
  }

  /** Tokens of each text, without special tokens. */
  async countTokens(texts: readonly string[], request: EncodeRequest): Promise<Uint32Array> {
    const { rules, tokenizer } = this.#model(request).model;
    const counts = new Uint32Array(texts.length);
    for (const [i, text] of texts.entries()) {
      counts[i] = (await tokenizer.encodeInSlices(rules.documentLead + text, request.signal)).length;
      await turn();
    }
    return counts;
  }

  /** Finds the part of the text that each row of a query, or of a chunk, comes from. `undefined` where that is unknown. */
  async locateTokens(
    { text, chunk }: { readonly text: string; readonly chunk?: LocatedChunk | undefined },
    request: EncodeRequest,
  ): Promise<Spans | undefined> {
    const { model } = this.#model(request);
    const { signal } = request;
    if (chunk === undefined) return (await queryTokens(model, text, { located: true, signal })).spans;
    const places = await model.tokenizer.locateInSlices(text, signal);
    return places && spansOfChunk(model, places, chunk);
  }

  async encodeQuery(
    text: string,
    request: EncodeRequest & { readonly located?: boolean },
  ): Promise<
    QueryRows & { readonly inputTokens: number; readonly timings: EncodeTimings; readonly spans?: Spans }
  > {
    const { model, modelIndex } = this.#model(request);
    const startedAt = performance.now();
    const { ids, ...located } = await queryTokens(model, text, request);
    const sequence = querySequence(model.rules, ids);
    const tokenizeMs = performance.now() - startedAt;
    const reservation = this.#reserve(sequence.ids.length);
    try {
      const { rows, queueMs, runMs, rowsMs } = await this.#runSequence('query', modelIndex, sequence, {
        ...request,
        isInternal: false,
      });
      const timings = { tokenizeMs, queueMs, runMs, rowsMs };
      this.#stageTimes.observe('query', timings);
      return { ...queryRows(rows), ...located, inputTokens: ids.length, timings };
    } finally {
      reservation.release();
    }
  }

  /** Runs sequences as queries, with f32 rows. For the golden check. */
  async runQuerySequences(modelIndex: number, sequences: readonly Sequence[]): Promise<readonly QueryRows[]> {
    return (await this.runTogether(modelIndex, 'query', sequences)).map(queryRows);
  }

  /** Runs sequences of one length as one batch, as far as the budget allows. For warm-up. */
  async runTogether(
    modelIndex: number,
    kind: BatchKind,
    sequences: readonly Sequence[],
  ): Promise<readonly BatchOutput[]> {
    const jobs = sequences.map(
      (sequence) => new SequenceJob({ ...internalRequest(), kind, modelIndex, sequence }),
    );
    for (const job of jobs) this.#scheduler.add(job);
    this.#dispatch();
    return Promise.all(jobs.map(async (job) => (await job.done).rows));
  }

  /** Tokenises the documents as they come, then admits or refuses them. They hold a place in the queue until `release`. */
  async admitDocuments(texts: AsyncIterable<string>, request: DocumentsRequest): Promise<AdmittedDocuments> {
    const { model, modelIndex } = this.#model(request);
    const problem = chunkingProblem(request.chunking, model.windowTokensMax);
    if (problem !== undefined) throw new EncoderFailure('invalid', problem);
    const reservation = this.#reserve(0);
    const intake = new DocumentIntake(model, request, (work) => {
      if (!reservation.grow(work)) throw this.#full();
    });
    try {
      for await (const text of texts) {
        intake.take(await this.#tokenize(modelIndex, text, request.signal, intake.tokensMaxOfNext));
      }
      intake.finish();
    } catch (error) {
      reservation.release();
      throw error;
    }
    const { documents, wholeCounts } = intake;
    return {
      tokenCounts: Uint32Array.from(documents, ({ ids }) => ids.length),
      unknownCounts: Uint32Array.from(documents, ({ ids }) => countOf(model.tokenizer.unknownId, ids)),
      wholeCounts,
      release: () => reservation.release(),
      run: async (write) => {
        // After the counts were told, because a caller refuses a list that is too long by them.
        this.#refuseHopeless(request.deadlineMs);
        const job = new DocumentJob({
          modelIndex,
          tenantId: request.tenantId,
          deadlineMs: request.deadlineMs,
          rules: model.rules,
          rowBytes: storedRowBytes(model),
          poolFactor: model.poolFactor,
          chunking: request.chunking,
          documents,
          signal: request.signal,
          write: async (part) => {
            if (part.timings !== undefined) this.#stageTimes.observe('document', part.timings);
            await write(part);
          },
          onRoom: () => this.#dispatch(),
          onDocument: (tokens) => reservation.shrink(intake.positionsOf(tokens)),
        });
        const abort = (): void => {
          job.fail(request.signal.reason as Error);
          // The next dispatch drops and counts the job. No other event may cause one for a long time.
          this.#dispatch();
        };
        request.signal.addEventListener('abort', abort, { once: true });
        if (request.signal.aborted) abort();
        this.#scheduler.add(job);
        this.#dispatch();
        try {
          await job.done;
        } finally {
          request.signal.removeEventListener('abort', abort);
        }
      },
    };
  }

  async #runSequence(
    kind: BatchKind,
    modelIndex: number,
    sequence: Sequence,
    request: Pick<SequenceJobOptions, 'tenantId' | 'deadlineMs' | 'signal' | 'isInternal'>,
  ): Promise<SequenceDone> {
    const job = new SequenceJob({ ...request, kind, modelIndex, sequence });
    this.#scheduler.add(job);
    this.#dispatch();
    return job.done;
  }

  #model({ model: { name, version } }: EncodeRequest): { model: ServedModel; modelIndex: number } {
    const modelIndex = this.models.findIndex((model) => model.name === name && model.version === version);
    const model = this.models[modelIndex];
    if (model === undefined) {
      throw new EncoderFailure('precondition', `model ${name} version ${version} is not loaded`);
    }
    return { model, modelIndex };
  }

  #reserve(tokens: number): Reservation {
    const reservation = this.#scheduler.reserve();
    if (reservation === undefined) throw this.#full();
    if (!reservation.grow(tokens)) {
      reservation.release();
      throw this.#full();
    }
    return reservation;
  }

  #full(): EncoderFailure {
    const seconds = this.#scheduler.queuedTokens / (this.#tokensPerSecond ?? Infinity);
    return new EncoderFailure('exhausted', 'the encoder queue is full', {
      retryDelayMs: Math.min(60_000, Math.max(1000, (seconds * 1000) / 2)),
    });
  }

  /** Refuses work that cannot end before its deadline, before anything is run for it. */
  #refuseHopeless(deadlineMs: number): void {
    if (this.#tokensPerSecond === undefined) return;
    const leftMs = Math.max(0, deadlineMs - Date.now());
    const neededMs = (this.#scheduler.queuedTokens / this.#tokensPerSecond) * 1000;
    if (neededMs <= leftMs * hopelessFactor) return;
    this.#scheduler.noteRefusal();
    // Another encoder may have less to do.
    throw new EncoderFailure(
      'exhausted',
      `about ${Math.ceil(neededMs / 1000)} s of work are queued, and the deadline is in ${Math.ceil(leftMs / 1000)} s`,
      { retryDelayMs: neededMs - leftMs },
    );
  }

  #dispatch(): void {
    for (;;) {
      const room = {
        query: this.#pool.roomFor('query'),
        document: this.#pool.roomFor('document', this.#scheduler.isContended),
        small: this.#pool.roomFor('small'),
      };
      if (room.query === 0 && room.document === 0 && room.small === 0) return;
      const at = this.#retries.findIndex(({ place, paddedLength }) => paddedLength <= room[place]);
      const [retry] = at === -1 ? [] : this.#retries.splice(at, 1);
      const plan = retry ?? this.#scheduler.next(Date.now(), room, this.#runningBatches === 0);
      if (plan === undefined) return;
      void this.#run(plan);
    }
  }

  async #run(plan: BatchPlan): Promise<void> {
    const { kind, place, modelIndex, entries, paddedLength, lone } = plan;
    this.#runningBatches++;
    this.#scheduler.began(plan);
    try {
      const batch = {
        kind,
        modelIndex,
        lone,
        ...packed(plan),
        paddedLength,
        paddedTexts: this.#fixedShapes
          ? paddedTexts(entries.length, paddedLength, this.#scheduler.budgetOf(kind))
          : entries.length,
      };
      const { output, runMs, rowsMs, startedAt } = await this.#pool.run(batch, place);
      // A lone query may run on several cores, and a small batch beside as many threads as there are cores: neither shows the rate.
      if (!lone && place !== 'small') this.#observe(paddedLength * entries.length, runMs + rowsMs);
      const total = entries.reduce((sum, { entry }) => sum + entry.sequence.ids.length, 0);
      const spoilt: BatchPlan['entries'][number][] = [];
      const slices = slicesOf(
        output,
        entries.map(({ entry }) => entry.sequence.rows),
        this.models[modelIndex]!,
      );
      for (const [i, each] of entries.entries()) {
        const { job, entry } = each;
        const share = entry.sequence.ids.length / total;
        const rows = slices[i]!;
        if (!areNumbers(rows)) spoilt.push(each);
        else job.deliver(entry, rows, { startedAt, runMs: runMs * share, rowsMs: rowsMs * share });
      }
      if (spoilt.length > 0) {
        await this.#failed(
          { ...plan, entries: spoilt },
          new Error('the model gave values that are no numbers'),
        );
      }
    } catch (error) {
      await this.#failed(plan, error as Error);
    }
    this.#runningBatches--;
    this.#scheduler.ended(plan);
    this.#dispatch();
  }

  /**
   * One text may have made its batch fail, so each text runs again alone. A lone query does too, because the fault may be that of
   * the session for lone queries. If a text fails alone, a text that the model is known to
   * run shows who is at fault. If that runs, the text is refused: its document or query cannot be encoded. If it fails too, the
   * model is broken and the job fails.
   */
  async #failed(plan: BatchPlan, error: Error): Promise<void> {
    const { entries, modelIndex, lone } = plan;
    if (entries.length > 1 || lone) {
      for (const each of entries) this.#retry({ ...plan, entries: [each], lone: false });
      return;
    }
    const failure = new EncoderFailure('internal', error.message, { cause: error });
    const [{ job, entry }] = entries as [BatchPlan['entries'][number]];
    if (job.isInternal) return job.fail(failure);
    if (await this.#runsAtAll(modelIndex)) return job.refuse(entry, failure);
    job.fail(failure);
    this.#onBroken(`the model runs no text any more: ${error.message}`);
  }

  async #runsAtAll(modelIndex: number): Promise<boolean> {
    const { rules, tokenizer } = this.models[modelIndex]!;
    return this.runQuerySequences(modelIndex, [querySequence(rules, tokenizer.encode('a'))]).then(
      () => true,
      () => false,
    );
  }

  #retry(plan: BatchPlan): void {
    const [{ job }] = plan.entries as [BatchPlan['entries'][number]];
    if (!job.cancelled && job.deadlineMs > Date.now()) this.#retries.push(plan);
    else job.drop(job.cancelled ? 'cancelled' : 'expired');
  }

  #observe(paddedTokens: number, runMs: number): void {
    const rate = (paddedTokens / Math.max(runMs, 0.01)) * 1000 * this.#pool.workers;
    const known = this.#tokensPerSecond;
    // A full queue makes full batches, which take less time per token than small ones.
    const isTelling = paddedTokens >= tellingShare * this.#scheduler.budgetOf('document');
    if (!isTelling && rate < (known ?? Infinity)) return;
    this.#tokensPerSecond = known === undefined ? rate : known * 0.8 + rate * 0.2;
  }
}

function countOf(id: number | undefined, tokens: Int32Array): number {
  return id === undefined ? 0 : tokens.reduce((count, token) => count + (token === id ? 1 : 0), 0);
}

function areNumbers(rows: BatchOutput): boolean {
  return rows.kind === 'document' ? rows.scales.every(isSoundScale) : areFinite(rows.vectors);
}

/** Whether the half is neither negative nor infinite nor NaN. */
function isSoundScale(bits: number): boolean {
  return bits < 0x7c00;
}

function queryRows(rows: BatchOutput): QueryRows {
  assertInvariant(rows.kind === 'query', 'a query got document rows');
  return rows;
}

/** The parameters of work of the encoder itself. */
function internalRequest(): Pick<SequenceJobOptions, 'tenantId' | 'deadlineMs' | 'signal' | 'isInternal'> {
  return {
    tenantId: '',
    deadlineMs: Infinity,
    signal: new AbortController().signal,
    isInternal: true,
  };
}

/** The rows of each text of a batch. `tokens`: how many of each text yielded vectors. */
function slicesOf(
  output: BatchOutput,
  tokens: readonly number[],
  model: Pick<ServedModel, 'dim' | 'rowBits' | 'poolFactor'>,
): BatchOutput[] {
  let row = 0;
  let token = 0;
  return tokens.map((count) => {
    const [from, fromToken] = [row, token];
    row += output.kind === 'query' ? count : rowsLeft(count, model);
    token += count;
    const width = output.kind === 'query' ? model.dim : rowBytes(model);
    const vectors = output.vectors.subarray(from * width, row * width);
    return output.kind === 'query'
      ? { kind: 'query', vectors: vectors as Float32Array, offsets: output.offsets.subarray(from, row) }
      : {
          kind: 'document',
          vectors: vectors as Int8Array,
          scales: output.scales.subarray(from, row),
          representatives: output.representatives.subarray(from, row),
          pooledOf: output.pooledOf.subarray(fromToken, token),
        };
  });
}

/** The entries of a batch as flat arrays. */
function packed({
  entries,
}: BatchPlan): Pick<BatchMessage, 'ids' | 'lengths' | 'attended' | 'kept' | 'rows'> {
  const sequences = entries.map(({ entry }) => entry.sequence);
  const positions = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  const ids = new Int32Array(positions);
  const kept = sequences.some((sequence) => sequence.kept !== undefined)
    ? new Uint8Array(positions).fill(1)
    : undefined;
  let at = 0;
  for (const sequence of sequences) {
    ids.set(sequence.ids, at);
    if (sequence.kept !== undefined) kept!.set(sequence.kept, at);
    at += sequence.ids.length;
  }
  return {
    ids,
    lengths: Uint32Array.from(sequences, (sequence) => sequence.ids.length),
    attended: Uint32Array.from(sequences, (sequence) => sequence.attended),
    kept,
    rows: sequences.reduce((sum, { rows }) => sum + rows, 0),
  };
}
