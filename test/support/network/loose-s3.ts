/**
 * An S3 server with one object in memory that takes the liberties of real ones: a range has the checksum of the whole object,
 * conditions are ignored, a range beyond the end has a code of its own, and a removed object is missing.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { crc32 } from 'node:zlib';

export interface LooseS3 {
  /** The AWS variables to use it. */
  readonly environment: Readonly<Record<string, string>>;
  /** The object at every address. */
  content: Buffer;
  /** Sends the whole object where a range was asked for. */
  ignoresRanges: boolean;
  /** The answer to every request. */
  refusal: { readonly status: number; readonly body: string } | undefined;
  close(): Promise<void>;
}

export async function startLooseS3(): Promise<LooseS3> {
  const server = createServer((request, reply) => {
    request.resume();
    request.on('end', () => answer(loose, request, reply));
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const loose: LooseS3 = {
    environment: {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
    },
    content: Buffer.alloc(0),
    ignoresRanges: false,
    refusal: undefined,
    async close() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
  return loose;
}

/** The body of an answer with this code. */
export function errorBody(code: string): string {
  return `<Error><Code>${code}</Code><Message>no</Message></Error>`;
}

function answer(
  { content, ignoresRanges, refusal }: LooseS3,
  request: IncomingMessage,
  reply: ServerResponse,
): void {
  const refuse = (status: number, code: string): void => {
    reply.writeHead(status).end(request.method === 'HEAD' ? '' : errorBody(code));
  };
  if (refusal !== undefined) return void reply.writeHead(refusal.status).end(refusal.body);
  if (request.method === 'DELETE') return refuse(404, 'NoSuchKey');
  if (request.method === 'PUT') return void reply.end();
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec((!ignoresRanges && request.headers.range) || '') ?? [];
  const part = first === undefined ? content : content.subarray(Number(first), Number(last) + 1);
  if (first !== undefined && part.length === 0) return refuse(416, 'RequestedRangeNotSatisfiable');
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(content));
  reply.writeHead(first === undefined ? 200 : 206, {
    ETag: `"${createHash('md5').update(content).digest('hex')}"`,
    'Content-Length': part.length,
    'x-amz-checksum-crc32': sum.toString('base64'),
    'x-amz-checksum-type': 'FULL_OBJECT',
  });
  reply.end(request.method === 'HEAD' ? '' : part);
}
