/**
 * Bytes of a body that come after the answer. A few of them are thrown away, and the connection serves the next request. If
 * more will come, the connection is closed: reading megabytes costs more than refusing them, and a tenant above its limits
 * could keep the event loop busy that way.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { holdStream } from './held-stream.ts';

const discardedBytesMax = 256 * 1024;

/**
 * How long a client that is still sending may take to read its answer. To close at once would reset the connection (RFC 9112
 * section 9.6). The time is short, because such a connection counts among those that may be open.
 */
const lingerMs = 500;

/** Requests whose body is not read yet, with the function that reads on. */
const unread = new WeakMap<IncomingMessage, () => void>();

/**
 * Holds a body back after its first read, until it is wanted or the answer is out. Otherwise Node parses 64 KiB of it while
 * the request is admitted, which takes 70 ms with chunks of one byte.
 */
export function leaveUnread(request: IncomingMessage, response: ServerResponse): void {
  // `inject()` has no connection.
  if (!(request.socket instanceof Socket)) return;
  unread.set(request, () => undefined);
  response.once('close', () => readOn(request));
  // By then the rest of the header's read has arrived. A small body is complete and needs no hold.
  setImmediate(() => {
    if (!request.complete && unread.has(request)) unread.set(request, holdStream(request.socket));
  });
}

export function readOn(request: IncomingMessage): void {
  unread.get(request)?.();
  unread.delete(request);
}

/** Whether more will come than is thrown away, or an unknown amount. */
export function bodyIsLeft({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  const declared = headers['content-length'];
  if (declared === undefined) return headers['transfer-encoding'] !== undefined;
  return Number(declared) > discardedBytesMax;
}

/** Sends `last`, ends the connection and reads nothing more. */
export function endUnread(socket: Duplex, last = ''): void {
  socket.end(last);
  holdStream(socket);
  // Keeps a process that ends alive. A connection that is not read does not, and its listener waits for it.
  setTimeout(() => socket.destroy(), lingerMs);
}

/** Ends the connection in this way if its last answer leaves the request's body unread. Node would reset it at once. */
export function endUnreadBehind(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    if (request.complete) Socket.prototype.destroySoon.call(socket);
    else endUnread(socket);
  };
}
