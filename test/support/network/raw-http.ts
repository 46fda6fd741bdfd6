/** Writes HTTP to a socket by hand, for requests that no client library sends: half a body, garbage, huge headers. */
import { connect, type Socket } from 'node:net';

import { within } from '../running/eventually.ts';

export interface RawReply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** One connection. It writes the given bytes and collects the answer. */
export interface RawConnection {
  write(bytes: string): void;
  /** Writes bytes. Resolves once they have left, or cannot leave. */
  flush(bytes: string): Promise<void>;
  /** The first complete response. */
  reply(): Promise<RawReply>;
  /** Whether the response has come, or cannot come any more. */
  answered(): boolean;
  /** Breaks the connection at once. */
  cut(): void;
}

export async function openRaw(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const opened = Promise.withResolvers<void>();
  socket.once('connect', opened.resolve);
  socket.once('error', opened.reject);
  await within('a connection', opened.promise);
  const reply = firstReply(socket);
  let answered = false;
  const note = (): void => {
    answered = true;
  };
  reply.then(note, note);
  return {
    write: (bytes) => void socket.write(bytes),
    flush: (bytes) =>
      new Promise((resolve) => {
        socket.write(bytes, () => resolve());
      }),
    reply: () => within('a response', reply),
    answered: () => answered,
    cut: () => void socket.resetAndDestroy(),
  };
}

async function firstReply(socket: Socket): Promise<RawReply> {
  let received = '';
  const complete = Promise.withResolvers<RawReply>();
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    received += text;
    const reply = parseReply(received, false);
    if (reply !== undefined) complete.resolve(reply);
  });
  socket.on('error', (error) => complete.reject(error));
  socket.on('close', () => {
    const reply = parseReply(received, true);
    if (reply === undefined) complete.reject(new Error(`closed after ${received.length} bytes`));
    else complete.resolve(reply);
  });
  try {
    return await complete.promise;
  } finally {
    socket.end();
  }
}

/** A response is complete when its Content-Length has come, or at the end of the connection. */
function parseReply(received: string, closed: boolean): RawReply | undefined {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...headerLines] = received.slice(0, headEnd).split('\r\n');
  const headers = new Map(
    headerLines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const body = received.slice(headEnd + 4);
  const length = Number(headers.get('content-length') ?? Number.NaN);
  if (!closed && !(body.length >= length)) return undefined;
  return { status: Number(statusLine.split(' ')[1]), headers, body };
}
