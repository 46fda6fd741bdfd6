/** Messages between the gRPC thread and a session worker: plain data. Large arrays are transferred. */
import type { Provider } from '../protocol/contract.ts';
import type { PooledTokens } from '../protocol/row-places.ts';
import type { SessionModel } from '../model/served-model.ts';

export type BatchKind = 'query' | 'document';
/** Which workers may run a batch: those of its kind, or the one for small batches of documents. */
export type BatchPlace = BatchKind | 'small';

export interface SessionWorkerData {
  readonly models: readonly SessionModel[];
  /** `auto` falls back from CUDA to the CPU. */
  readonly provider: Provider;
  readonly deviceId: number;
  /** Threads of ONNX Runtime inside one run. */
  readonly intraOpThreads: number;
  /** The same for lone queries. If they are more, a second session of each model runs these. */
  readonly loneThreads: number;
  /** The thread has this niceness, where the model runs on the CPU. */
  readonly niceness: number;
}

export interface BatchMessage {
  readonly type: 'batch';
  readonly batchId: number;
  readonly kind: BatchKind;
  readonly modelIndex: number;
  /** Whether a lone query runs, which may use idle cores. */
  readonly lone?: boolean;
  /** Ids of all texts, one text after the other. */
  readonly ids: Int32Array;
  /** u32 [texts]: the length of each text, and how many of its leading positions are attended. */
  readonly lengths: Uint32Array;
  readonly attended: Uint32Array;
  /** u8, as long as `ids`: 1 = the position yields a row. Absent = all do. */
  readonly kept: Uint8Array | undefined;
  /** Positions of the whole batch that yield a row. */
  readonly rows: number;
  /** Positions of the padded batch: at least the longest text. */
  readonly paddedLength: number;
  /** Rows of the padded batch: at least the texts. */
  readonly paddedTexts: number;
}

/** Rows of all texts of the batch, one text after the other. */
export type BatchOutput =
  | { readonly kind: 'query'; readonly vectors: Float32Array; readonly offsets: Float32Array }
  | ({ readonly kind: 'document'; readonly vectors: Int8Array; readonly scales: Uint16Array } & PooledTokens);

export type WorkerReply =
  | { readonly type: 'ready'; readonly provider: 'cpu' | 'cuda'; readonly fallback: string | undefined }
  | { readonly type: 'failed'; readonly message: string }
  | {
      readonly type: 'done';
      readonly batchId: number;
      readonly runMs: number;
      /** How long rows were made of what the run gave. */
      readonly rowsMs: number;
      /** From the start of the run to this message. */
      readonly elapsedMs: number;
      readonly output: BatchOutput;
    }
  | { readonly type: 'error'; readonly batchId: number; readonly message: string };
