/**
 * The gRPC contract for both ends: the service and its messages, from proto/encoder.proto, and views of bytes. The types are
 * generated (`npm run types`), and nothing of them remains at run time.
 */
import { loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { fileURLToPath } from 'node:url';
import type { ProtoGrpcType } from './generated/encoder.ts';
import type { EncodeDocumentsRequest } from './generated/maxsimd/encoder/v1/EncodeDocumentsRequest.ts';
import type { EncodeDocumentsResponse } from './generated/maxsimd/encoder/v1/EncodeDocumentsResponse.ts';
import type { EncodeQueriesRequest } from './generated/maxsimd/encoder/v1/EncodeQueriesRequest.ts';
import type { EncodeQueriesResponse } from './generated/maxsimd/encoder/v1/EncodeQueriesResponse.ts';
import type { GetStatisticsResponse } from './generated/maxsimd/encoder/v1/GetStatisticsResponse.ts';

export type {
  EncodeDocumentsRequest,
  EncodeDocumentsResponse,
  EncodeQueriesRequest,
  EncodeQueriesResponse,
  GetStatisticsResponse,
};
export type { CountTokensRequest } from './generated/maxsimd/encoder/v1/CountTokensRequest.ts';
export type { CountTokensResponse } from './generated/maxsimd/encoder/v1/CountTokensResponse.ts';
export type { EncodeQueryRequest } from './generated/maxsimd/encoder/v1/EncodeQueryRequest.ts';
export type { EncodeQueryResponse } from './generated/maxsimd/encoder/v1/EncodeQueryResponse.ts';
export type { LocateTokensRequest } from './generated/maxsimd/encoder/v1/LocateTokensRequest.ts';
export type { LocateTokensResponse } from './generated/maxsimd/encoder/v1/LocateTokensResponse.ts';
export type { GetInfoResponse } from './generated/maxsimd/encoder/v1/GetInfoResponse.ts';
export type { ModelReference } from './generated/maxsimd/encoder/v1/ModelReference.ts';
export type { EncoderHandlers } from './generated/maxsimd/encoder/v1/Encoder.ts';

export type OpenMessage = NonNullable<EncodeDocumentsRequest['open']>;
export type PartMessage = NonNullable<EncodeDocumentsResponse['part']>;
export type QueryItem = EncodeQueriesRequest['items'][number];
export type AnswerItem = EncodeQueriesResponse['items'][number];
export type QueryFailure = NonNullable<AnswerItem['failure']>;
export type StageHistogram = GetStatisticsResponse['stages'][number];

/** The service's full name, which is also its key in the health service. */
export const serviceName = 'maxsimd.encoder.v1.Encoder';

/** The trailer with the milliseconds to wait before another attempt (gRFC A6). */
export const retryDelayTrailer = 'grpc-retry-pushback-ms';

/** The largest message that either end takes. Parts of documents are far smaller. */
export const messageBytesMax = 64 << 20;

/** Bounds of a request. The service allows far less. */
export const requestBounds = {
  documents: 1024,
  documentBytes: 4 << 20,
  /** Tokens in the windows of all documents. A request to the service reaches it only if windows overlap by much. */
  windowTokens: 8 << 20,
  /** Rows that all documents store. With rows of some hundred bytes a request reaches the bound above first. */
  storedBytes: 2 ** 30,
  queryBytes: 1 << 20,
  /** A located text. */
  locatedBytes: 128 << 10,
  identifierLength: 256,
} as const;

const definition = loadSync(fileURLToPath(new URL('../../../proto/encoder.proto', import.meta.url)), {
  longs: Number,
  defaults: true,
  oneofs: false,
});
const loaded = loadPackageDefinition(definition) as unknown as ProtoGrpcType;

export const EncoderClient = loaded.maxsimd.encoder.v1.Encoder;
export type EncoderClient = InstanceType<typeof EncoderClient>;
export const encoderService = EncoderClient.service;

/** The bytes of an array, without a copy. They are little-endian on every supported platform. */
export function bytesOf(array: Int8Array | Uint8Array | Uint16Array | Uint32Array | Float32Array): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

type Numbers = Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer>;

/** The numbers in bytes, without a copy where the bytes are aligned. Undefined when they are no whole number of elements. */
export function numbersIn<Array extends Numbers>(
  bytes: Uint8Array,
  Kind: {
    readonly BYTES_PER_ELEMENT: number;
    new (buffer: ArrayBuffer, offset?: number, length?: number): Array;
  },
): Array | undefined {
  const count = bytes.length / Kind.BYTES_PER_ELEMENT;
  if (!Number.isInteger(count)) return undefined;
  const buffer = bytes.buffer as ArrayBuffer;
  const { byteOffset } = bytes;
  if (byteOffset % Kind.BYTES_PER_ELEMENT === 0) return new Kind(buffer, byteOffset, count);
  return new Kind(buffer.slice(byteOffset, byteOffset + bytes.length));
}
