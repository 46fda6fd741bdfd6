/** The gRPC contract as both ends see it: service definitions from proto/encoder.proto, message types, byte views. */
import {
  loadPackageDefinition,
  type ServiceClientConstructor,
  type ServiceDefinition,
  type status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { fileURLToPath } from 'node:url';
import type { EncodeTimings } from './contract.ts';
import type { SchedulerStatistics } from './scheduler.ts';

export interface ModelReference {
  readonly name: string;
  readonly version: string;
}

export interface WireModel extends ModelReference {
  readonly dim: number;
  readonly windowTokensMax: number;
}

export interface GetInfoResponse {
  readonly models: readonly WireModel[];
  readonly provider: string;
  readonly instance?: string;
}

export interface GetStatisticsResponse extends SchedulerStatistics {
  readonly tokensPerSecond: number;
  readonly loopDelayP99Ms: number;
  readonly residentBytes: number;
  readonly provider: string;
  readonly deviceId: number;
  readonly stages: readonly {
    readonly kind: string;
    readonly stage: string;
    readonly counts: readonly number[];
    readonly sumMs: number;
  }[];
  readonly stageBoundsMs: readonly number[];
}

interface Targeted {
  readonly model: ModelReference | null;
  readonly tenantId: string;
}

export interface CountTokensRequest extends Targeted {
  readonly texts: readonly string[];
}

export interface CountTokensResponse {
  readonly tokenCounts: Uint8Array;
}

export interface EncodeQueryRequest extends Targeted {
  readonly text: string;
}

export interface EncodeQueryResponse {
  readonly inputTokens: number;
  readonly rows: number;
  readonly vectors: Uint8Array;
  readonly offsets: Uint8Array;
  readonly timings: EncodeTimings | null;
  /** Not empty: the query cannot be encoded. */
  readonly problem?: string;
}

/** `query` or `cancel` is set. */
export interface EncodeQueriesRequest {
  readonly number: number;
  readonly query?: EncodeQueryRequest | null;
  readonly cancel?: Record<string, never> | null;
  readonly timeoutMs?: number;
}

/** One of the fields beside `number` is set. */
export interface EncodeQueriesResponse {
  readonly number: number;
  readonly reply?: EncodeQueryResponse | null;
  readonly failure?: QueryFailure | null;
  readonly draining?: Record<string, never> | null;
}

export interface QueryFailure {
  readonly status: status;
  readonly message: string;
  readonly retryDelayMs: number;
}

export interface OpenMessage extends Targeted {
  readonly chunking: {
    readonly maxTokens: number;
    readonly overlapTokens: number;
    readonly minimumChunkTokens: number;
  } | null;
  readonly documentCount: number;
}

/** One of the fields is set. */
export interface EncodeDocumentsRequest {
  readonly open?: OpenMessage;
  readonly document?: { readonly text: string };
  readonly proceed?: Record<string, never>;
}

export interface PartMessage {
  readonly documentIndex: number;
  readonly chunkRows: Uint8Array;
  readonly vectors: Uint8Array;
  readonly scales: Uint8Array;
  readonly last: boolean;
  readonly timings: EncodeTimings | null;
  /** Not empty: the document cannot be encoded. */
  readonly problem?: string;
}

/** One of the fields is set. */
export interface EncodeDocumentsResponse {
  readonly tokenCounts?: { readonly tokenCounts: Uint8Array };
  readonly part?: PartMessage;
}

/** The service's full name, which is also its key in the health service. */
export const serviceName = 'maxsimd.encoder.v1.Encoder';

/** Trailer with the milliseconds to wait before another try (gRFC A6). */
export const retryDelayTrailer = 'grpc-retry-pushback-ms';

/** Largest message either side takes; parts are far smaller. */
export const messageBytesMax = 64 << 20;

/** Bounds of a request, well above what the service lets through. */
export const requestBounds = {
  documents: 1024,
  documentBytes: 4 << 20,
  queryBytes: 1 << 20,
  identifierLength: 256,
} as const;

const definition = loadSync(fileURLToPath(new URL('../../proto/encoder.proto', import.meta.url)), {
  longs: Number,
  defaults: true,
  oneofs: false,
});
const loaded = loadPackageDefinition(definition) as unknown as {
  maxsimd: { encoder: { v1: { Encoder: ServiceClientConstructor } } };
};

export const EncoderClient: ServiceClientConstructor = loaded.maxsimd.encoder.v1.Encoder;
export const encoderService: ServiceDefinition = EncoderClient.service;

/** The bytes of an array, without a copy. Little-endian, as every platform with these packages is. */
export function bytesOf(array: Int8Array | Uint16Array | Uint32Array | Float32Array): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

/** Copies bytes into a fresh (aligned) buffer; undefined when they are no whole number of elements. */
export function alignedCopy(bytes: Uint8Array, elementBytes: number): ArrayBuffer | undefined {
  if (bytes.length % elementBytes !== 0) return undefined;
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return copy;
}
