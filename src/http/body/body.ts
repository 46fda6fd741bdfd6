/** Receiving bodies: JSON in UTF-8 only, bounded in bytes and in time. */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { assertInvariant } from '../../errors.ts';
import { unknownRoute } from '../admission.ts';
import type { BodyRoom } from './body-room.ts';
import { protocolError } from '../error-body.ts';
import { readJsonBody } from './json-body.ts';
import { LoopTurns } from '../protocol/loop-turns.ts';
import { continueIfExpected } from '../protocol/protocol.ts';
import { ClientGoneError } from '../request-scope.ts';

export interface BodyLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  /** Beyond `smallBodyBytes`, each body takes room here until its request is over. */
  readonly room: BodyRoom;
}

/** Searches among them, which so do not wait behind uploads. */
export const smallBodyBytes = 64 * 1024;

/** Makes JSON in UTF-8 the only body the server takes; an empty one counts as none (some clients send a JSON content type with DELETE). */
export function acceptJsonBodies(app: FastifyInstance, limits: BodyLimits): void {
  const parses = new LoopTurns();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    // Where nobody is admitted nothing takes a body.
    if (!request.scope.isAdmitted) throw unknownRoute();
    assertPlainUtf8(request);
    const bytes = await readBody(request, payload, limits);
    if (bytes.length === 0) return undefined;
    const isLarge = bytes.length > smallBodyBytes;
    // Several may have come to their ends together.
    if (isLarge) await parses.next();
    const body = readJsonBody(bytes);
    // It is validated next, and that takes as long again.
    if (isLarge) await parses.next();
    return body;
  });
}

function assertPlainUtf8(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw protocolError(415, 'compressed bodies are not supported', 'unsupported_media_type');
  }
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    throw protocolError(415, 'JSON bodies must be UTF-8', 'unsupported_media_type');
  }
}

function readBody(request: FastifyRequest, payload: Readable, limits: BodyLimits): Promise<Buffer> {
  const tooLarge = () => protocolError(413, `the body must have at most ${limits.bytesMax} bytes`, 'too_big');
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > limits.bytesMax) return Promise.reject(tooLarge());
  continueIfExpected(request.raw);

  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let received = 0;
    let entering: Promise<void> | undefined;
    const timer = setTimeout(
      () => finish(protocolError(408, 'the body did not arrive in time', 'timeout')),
      limits.timeoutMs,
    );
    const finish = (error?: Error): void => {
      clearTimeout(timer);
      payload.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === undefined)
        return resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, received));
      // What still arrives is discarded, until the answer ends the connection.
      payload.on('error', () => {}).resume();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      received += chunk.length;
      if (received > limits.bytesMax) return finish(tooLarge());
      chunks.push(chunk);
      if (entering !== undefined || received <= smallBodyBytes) return;
      payload.pause();
      entering = takeRoom(request, declared || limits.bytesMax, limits.room).then(
        () => void payload.resume(),
        finish,
      );
    };
    const onEnd = (): void => finish();
    const onGone = (): void => finish(new ClientGoneError());
    payload.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

async function takeRoom({ scope }: FastifyRequest, bytes: number, room: BodyRoom): Promise<void> {
  const { context } = scope;
  assertInvariant(context !== undefined, 'only tenants send large bodies');
  scope.atEnd(await room.enter({ tenantId: context.tenant.id, bytes }, context.signal));
}
