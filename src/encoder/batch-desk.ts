/**
 * Memory that the gRPC thread and one session worker share: the bell that wakes the worker, and room for one query batch and
 * then its answer. A small batch on the desk is there and back in a third of the time of messages, which are
 * serialised twice and wake two event loops. Whatever does not fit, or comes while the desk is taken, goes by
 * message; the bell rings for both.
 *
 * The desk is free, holds a batch, or holds an answer. The gRPC thread `put`s on a free desk and `collect`s, the worker
 * `take`s and `answer`s; each reads only what the state gives it.
 */
import { assertInvariant } from '../errors.ts';
import type { BatchMessage, BatchOutput, WorkerReply } from './session-protocol.ts';

type QueryOutput = Extract<BatchOutput, { kind: 'query' }>;
type Answer = Extract<WorkerReply, { type: 'done' | 'error' }>;

/** Places of the control words. */
const bell = 0;
const answers = 1;
const state = 2;
const fields = 3;
const free = 0;
const asked = 1;
const taken = 2;
const done = 3;
const failed = 4;

const runMsByte = 64;
const dataByte = 128;
/** A thousand rows of 128 dimensions. */
const dataBytes = 512 << 10;

export class BatchDesk {
  /** To be handed to the other thread. */
  readonly memory: SharedArrayBuffer;
  readonly #control: Int32Array;
  readonly #runMs: Float64Array;
  readonly #integers: Int32Array;
  readonly #floats: Float32Array;
  readonly #bytes: Uint8Array;

  constructor(memory = new SharedArrayBuffer(dataByte + dataBytes)) {
    this.memory = memory;
    this.#control = new Int32Array(memory, 0, runMsByte / 4);
    this.#runMs = new Float64Array(memory, runMsByte, 1);
    this.#integers = new Int32Array(memory, dataByte);
    this.#floats = new Float32Array(memory, dataByte);
    this.#bytes = new Uint8Array(memory, dataByte);
  }

  /** Wakes the worker, or keeps it from falling asleep. */
  ring(): void {
    Atomics.add(this.#control, bell, 1);
    Atomics.notify(this.#control, bell);
  }

  /** How often the bell rang; to be read before looking for work. */
  rings(): number {
    return Atomics.load(this.#control, bell);
  }

  /** Blocks the thread until the bell has rung more than `rings` times. */
  sleep(rings: number): void {
    Atomics.wait(this.#control, bell, rings);
  }

  /**
   * Lays a batch on the desk and returns when its answer lies there, to be `collect`ed; `undefined` when the desk
   * is taken or too small for the batch or its answer (`dim` floats a row, and one).
   */
  put(batch: BatchMessage, dim: number): Promise<unknown> | undefined {
    const { ids, lengths, attended, kept } = batch;
    const positions = ids.length;
    const texts = lengths.length;
    if (Atomics.load(this.#control, state) !== free || batch.kind !== 'query') return undefined;
    if (4 * (positions + 2 * texts) + positions > dataBytes) return undefined;
    if (4 * batch.rows * (dim + 1) > dataBytes) return undefined;
    const { batchId, model, rows, paddedLength, paddedTexts } = batch;
    const keeps = kept === undefined ? 0 : 1;
    this.#control.set([batchId, model, rows, paddedLength, paddedTexts, positions, texts, keeps], fields);
    this.#integers.set(ids);
    this.#integers.set(lengths, positions);
    this.#integers.set(attended, positions + texts);
    if (kept !== undefined) this.#bytes.set(kept, 4 * (positions + 2 * texts));
    const answered = Atomics.waitAsync(this.#control, answers, Atomics.load(this.#control, answers));
    Atomics.store(this.#control, state, asked);
    this.ring();
    return Promise.resolve(answered.value);
  }

  /** The batch that lies on the desk. */
  take(): BatchMessage | undefined {
    if (Atomics.load(this.#control, state) !== asked) return undefined;
    const [batchId, model, rows, paddedLength, paddedTexts, positions, texts, keeps] = this.#control.subarray(
      fields,
      fields + 8,
    ) as unknown as [number, number, number, number, number, number, number, number];
    const keptFrom = 4 * (positions + 2 * texts);
    Atomics.store(this.#control, state, taken);
    return {
      type: 'batch',
      batchId,
      kind: 'query',
      model,
      ids: this.#integers.slice(0, positions),
      lengths: Uint32Array.from(this.#integers.subarray(positions, positions + texts)),
      attended: Uint32Array.from(this.#integers.subarray(positions + texts, positions + 2 * texts)),
      kept: keeps === 0 ? undefined : this.#bytes.slice(keptFrom, keptFrom + positions),
      rows,
      paddedLength,
      paddedTexts,
    };
  }

  answer({ vectors, offsets }: QueryOutput, runMs: number): void {
    this.#floats.set(vectors);
    this.#floats.set(offsets, vectors.length);
    this.#control[fields + 1] = vectors.length;
    this.#control[fields + 2] = offsets.length;
    this.#runMs[0] = runMs;
    this.#answered(done);
  }

  fail(message: string): void {
    const { written } = new TextEncoder().encodeInto(message, this.#bytes);
    this.#control[fields + 1] = written;
    this.#answered(failed);
  }

  /** Takes the answer; the desk is free again. */
  collect(): Answer {
    const [batchId, first, second] = this.#control.subarray(fields, fields + 3) as unknown as [
      number,
      number,
      number,
    ];
    const outcome = Atomics.load(this.#control, state);
    assertInvariant(outcome === done || outcome === failed, 'no answer lies on the desk');
    const answer: Answer =
      outcome === failed
        ? { type: 'error', batchId, message: Buffer.from(this.#bytes.slice(0, first)).toString() }
        : {
            type: 'done',
            batchId,
            runMs: this.#runMs[0]!,
            output: {
              kind: 'query',
              vectors: this.#floats.slice(0, first),
              offsets: this.#floats.slice(first, first + second),
            },
          };
    Atomics.store(this.#control, state, free);
    return answer;
  }

  #answered(outcome: number): void {
    Atomics.store(this.#control, state, outcome);
    Atomics.add(this.#control, answers, 1);
    Atomics.notify(this.#control, answers);
  }
}
