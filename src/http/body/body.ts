/** Receives bodies: JSON in UTF-8, plain or compressed by gzip, bounded in bytes and in time. */
import type { Readable } from 'node:stream';
import { Socket } from 'node:net';
import { createGunzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { assertInvariant, invalid, type ServiceError } from '../../errors.ts';
import { unknownRoute } from '../admission.ts';
import type { BodyPlace, BodyRoom } from './body-room.ts';
import { protocolError } from '../error-body.ts';
import { gather, smallBodyBytes, type GatheredBody, type GatherOptions } from './gather.ts';
import { readJsonBody, type JsonBounds } from './json-body.ts';
import { LoopTurns } from '../protocol/loop-turns.ts';
import { continueIfExpected } from '../protocol/protocol.ts';
import { readOn } from '../protocol/unread-body.ts';
import { ClientGoneError } from '../request-scope.ts';
import { SmallPieces } from './small-pieces.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent = those of the contract. */
    readonly jsonBounds?: JsonBounds;
  }
}

export interface BodyLimits {
  /** Bytes of a body as it is sent, and once it is inflated. */
  readonly bytesMax: number;
  readonly timeoutMs: number;
  /** A body of more than `smallBodyBytes` takes room here until its request is over. */
  readonly room: Pick<BodyRoom, 'open'>;
}

/** Makes JSON in UTF-8 the only body that the server takes. An empty body counts as none: some clients send a JSON content type with DELETE. */
export function acceptJsonBodies(app: FastifyInstance, limits: BodyLimits): void {
  const parses = new LoopTurns();
  const smallPieces = new SmallPieces();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    // A request that is not admitted has no route that takes a body.
    if (!request.scope.isAdmitted) throw unknownRoute();
    const isCompressed = contentEncodingOf(request) === 'gzip';
    assertUtf8(request);
    const { bytes, leave } = await receive(request, payload, { limits, smallPieces, isCompressed });
    request.scope.atEnd(leave);
    if (bytes.length === 0) return undefined;
    const isLarge = bytes.length > smallBodyBytes;
    // Several bodies may have arrived together.
    if (isLarge) await parses.next();
    const body = readJsonBody(bytes, {
      bounds: request.routeOptions.config.jsonBounds,
      dropsNulls: request.method !== 'PATCH',
    });
    // Validation comes next, and takes as long again.
    if (isLarge) await parses.next();
    return body;
  });
}

/** RFC 9110 section 8.4.1. */
function contentEncodingOf({ headers }: FastifyRequest): 'gzip' | 'identity' {
  switch ((headers['content-encoding'] ?? 'identity').trim().toLowerCase()) {
    case 'identity':
      return 'identity';
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    default:
      throw protocolError(415, 'the only content encoding supported is gzip', 'unsupported_media_type');
  }
}

/** Names of UTF-8, and of ASCII, which is a part of it (encoding.spec.whatwg.org, section 4.2; RFC 1345). */
const utf8Labels: ReadonlySet<string> = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

function assertUtf8({ headers }: FastifyRequest): void {
  const charset = /;\s*charset\s*=\s*["']?([^\s;"']+)/i.exec(headers['content-type'] ?? '')?.[1];
  if (charset === undefined || utf8Labels.has(charset.toLowerCase())) return;
  throw protocolError(415, 'JSON bodies must be UTF-8', 'unsupported_media_type');
}

async function receive(
  request: FastifyRequest,
  payload: Readable,
  {
    limits,
    smallPieces,
    isCompressed,
  }: { readonly limits: BodyLimits; readonly smallPieces: SmallPieces; readonly isCompressed: boolean },
): Promise<GatheredBody> {
  const { bytesMax, timeoutMs, room } = limits;
  const errors = {
    tooLarge: () => protocolError(413, `the body must have at most ${bytesMax} bytes`, 'too_big'),
    late: () => protocolError(408, 'the body did not arrive in time', 'timeout'),
  };
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw errors.tooLarge();
  continueIfExpected(request.raw);
  readOn(request.raw);
  const options = {
    bytesMax,
    timeoutMs,
    smallPieces,
    openPlace: (lose: (reason: ServiceError) => void) => placeOf(request, room, lose),
  };
  const { socket } = request.raw;
  const received =
    bodyThatIsHere(request) ??
    (await gather(payload, {
      ...options,
      // `inject()` has no connection.
      held: socket instanceof Socket ? socket : payload,
      errors: { ...errors, broken: () => new ClientGoneError() },
    }));
  if (!isCompressed || received.bytes.length === 0) return received;
  try {
    return await inflated(received.bytes, { ...options, errors: { ...errors, broken: notGzip } });
  } finally {
    received.leave();
  }
}

/** A small body that came in one read with its header, as most do. It needs no timer and no listeners. */
function bodyThatIsHere({ raw, headers }: FastifyRequest): GatheredBody | undefined {
  const declared = Number(headers['content-length'] ?? 0);
  if (!raw.complete || declared > smallBodyBytes || raw.readableLength !== declared) return undefined;
  const bytes = raw.read() as Buffer | null;
  return bytes === null ? undefined : { bytes, leave: () => undefined };
}

/** Stops at the first byte after `bytesMax`. */
async function inflated(compressed: Buffer, options: Omit<GatherOptions, 'held'>): Promise<GatheredBody> {
  const inflating = createGunzip({ chunkSize: inflatedPieceBytes });
  inflating.end(compressed);
  try {
    const body = await gather(inflating, { ...options, held: inflating });
    if (inflating.bytesWritten === compressed.length) return body;
    body.leave();
    throw notGzip();
  } finally {
    inflating.destroy();
  }
}

const inflatedPieceBytes = 64 * 1024;

function notGzip(): ServiceError {
  return invalid('', 'the body is not gzip', 'malformed_gzip');
}

function placeOf(
  { scope }: FastifyRequest,
  room: BodyLimits['room'],
  lose: (reason: ServiceError) => void,
): BodyPlace {
  assertInvariant(scope.context !== undefined, 'only tenants send large bodies');
  return room.open(scope.context.tenant.id, lose);
}
