/**
 * Reading and parsing of JSON bodies: bounded in bytes and in time, UTF-8 only, `__proto__` and its like kept
 * as data (Fastify's own parser refuses them). Of an object key given twice the last value counts, as in
 * `JSON.parse`.
 */
import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ServiceError } from '../errors.ts';
import { protocolError } from './error-body.ts';
import { continueIfExpected } from './protocol.ts';
import { ClientGoneError } from './request-scope.ts';

export interface BodyLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
}

/** Makes JSON in UTF-8 the only body the server takes; an empty one counts as none (some clients send a JSON content type with DELETE). */
export function acceptJsonBodies(app: FastifyInstance, limits: BodyLimits): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    assertPlainUtf8(request);
    const bytes = await readBody(request, payload, limits);
    if (bytes.length === 0) return undefined;
    const text = decode(bytes);
    request.bodyText = text;
    return parse(text);
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
    const timer = setTimeout(
      () => finish(protocolError(408, 'the body did not arrive in time', 'timeout')),
      limits.timeoutMs,
    );
    const finish = (error?: Error): void => {
      clearTimeout(timer);
      payload.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === undefined)
        return resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, received));
      // What still arrives is discarded, so that a client in the middle of sending can read the answer
      // (closing now would reset its connection); the server's request timeout bounds it.
      payload.on('error', () => {}).resume();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      received += chunk.length;
      if (received > limits.bytesMax) return finish(tooLarge());
      chunks.push(chunk);
    };
    const onEnd = (): void => finish();
    const onGone = (): void => finish(new ClientGoneError());
    payload.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8');
  const text = bytes.toString('utf8');
  // RFC 8259 section 8.1 lets a parser ignore a byte order mark.
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the body, which must reach neither answer nor log; the place may.
    const place = /\(line (\d+) column (\d+)\)$/.exec((error as Error).message);
    throw malformed(
      `the body is not valid JSON${place === null ? '' : `: see line ${place[1]}, column ${place[2]}`}`,
    );
  }
}

function malformed(message: string): ServiceError {
  return new ServiceError('validation_error', message, {
    issues: [{ path: '', message, code: 'invalid_json' }],
  });
}
