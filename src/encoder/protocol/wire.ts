/**
 * The gRPC contract as both ends see it: service definitions and message types from proto/encoder.proto, byte views. The
 * types are generated (`npm run types`) and gone when the program runs.
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

/** Trailer with the milliseconds to wait before another try (gRFC A6). */
export const retryDelayTrailer = 'grpc-retry-pushback-ms';

/** Largest message either side takes; parts are far smaller. */
export const messageBytesMax = 64 << 20;

/** Bounds of a request, well above what the service lets through. */
export const requestBounds = {
  documents: 1024,
  documentBytes: 4 << 20,
  /** That the windows of all documents hold: no body of the service gets there unless they overlap by much. */
  windowTokens: 8 << 20,
  queryBytes: 1 << 20,
  /** Located in one turn of the event loop. */
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
