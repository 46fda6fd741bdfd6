/**
 * What a client goes on sending behind its answer. A little of it is thrown away, and the connection serves the next
 * request. With more to come the connection is closed: to read megabytes costs more than to refuse them, and a tenant
 * beyond its limits could keep the event loop busy with nothing else.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { holdStream } from './held-stream.ts';

const discardedBytesMax = 256 * 1024;

/**
 * How long a client that is still sending may take to read its answer: closing at once would reset it (RFC 9112 section
 * 9.6). Short, for each such connection is one of those that may be open.
 */
const lingerMs = 500;

/** Requests whose body is not read yet, and what reads on. */
const unread = new WeakMap<IncomingMessage, () => void>();

/**
 * Nothing but the first read of a body comes before somebody wants it, or the answer is out. Otherwise Node parses 64 KiB
 * of it while the request is admitted, and with chunks of one byte that takes 70 ms.
 */
export function leaveUnread(request: IncomingMessage, response: ServerResponse): void {
  // `inject()` has no connection.
  if (!(request.socket instanceof Socket)) return;
  unread.set(request, () => undefined);
  response.once('close', () => readOn(request));
  // What came in the same read as the header is there by then: a small body needs no hold.
  setImmediate(() => {
    if (!request.complete && unread.has(request)) unread.set(request, holdStream(request.socket));
  });
}

/** From now on the body is read. */
export function readOn(request: IncomingMessage): void {
  unread.get(request)?.();
  unread.delete(request);
}

/** Whether more is to come than is thrown away; also where nobody knows how much. */
export function bodyIsLeft({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  const declared = headers['content-length'];
  if (declared === undefined) return headers['transfer-encoding'] !== undefined;
  return Number(declared) > discardedBytesMax;
}

/** Ends the connection and reads nothing more; `last` is what it still sends. */
export function endUnread(socket: Duplex, last = ''): void {
  socket.end(last);
  holdStream(socket);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** Ends the connection so where its last answer leaves the body of this request unread: Node would reset it at once. */
export function endUnreadBehind(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    if (request.complete) Socket.prototype.destroySoon.call(socket);
    else endUnread(socket);
  };
}
