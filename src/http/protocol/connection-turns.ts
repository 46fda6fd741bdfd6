/**
 * Starts one request of a connection at a time. Node's server starts every request that it finds in one read, which are
 * hundreds in 64 KiB if a client pipelines them (RFC 9112, section 9.3.2), and keeps their answers until the client reads
 * them. Here a request starts when the operating system has the answer before it. Meanwhile the connection is not read, so
 * further bytes wait in the kernel's buffers and in the client.
 *
 * Requests of one read are parsed already, and wait here. Their number is bounded over all connections. The connection that
 * exceeds the bound is closed, as a client that pipelines must expect.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { holdStream } from './held-stream.ts';
import { LoopTurns } from './loop-turns.ts';

/** Each takes some 2 KiB. */
const waitingMax = 4_096;

interface Connection {
  /** A request is being answered, or about to start. */
  busy: boolean;
  waiting: { readonly request: IncomingMessage; readonly response: ServerResponse }[];
  /** Runs instead of another request. */
  last: (() => void) | undefined;
  /** Reads on; absent while nothing waits. */
  release: (() => void) | undefined;
}

export class ConnectionTurns {
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #starts = new LoopTurns();
  #waiting = 0;

  inTurn(handler: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      const connection = this.#connection(socket);
      if (!connection.busy) return this.#start(handler, request, response);
      // The rest of the same read still arrives.
      if (socket.destroyed || connection.last !== undefined) return;
      if (this.#waiting >= waitingMax) return void socket.destroy();
      connection.waiting.push({ request, response });
      this.#waiting += 1;
      connection.release ??= holdStream(socket);
    };
  }

  /** Runs `work` after the answers to all whole requests so far. No later request is answered. */
  afterLast(socket: Duplex, work: () => void): void {
    const connection = this.#connection(socket);
    if (!connection.busy) return work();
    const whole = connection.waiting.filter(({ request }) => request.complete);
    this.#waiting -= connection.waiting.length - whole.length;
    connection.waiting = whole;
    connection.last ??= work;
  }

  #connection(socket: Duplex): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { busy: false, waiting: [], last: undefined, release: undefined };
    this.#connections.set(socket, connection);
    return connection;
  }

  #start(handler: RequestListener, request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connection(socket);
    connection.busy = true;
    // The event `close` of a closed answer would not come again.
    if (socket.destroyed) return this.#next(handler, socket, connection);
    response.once('close', () => this.#next(handler, socket, connection));
    handler(request, response);
  }

  #next(handler: RequestListener, socket: Duplex, connection: Connection): void {
    // Node gives an answer its connection once the answer before is out, unless that one closed the connection.
    if (socket.destroyed || connection.waiting[0]?.response.socket === null) {
      this.#waiting -= connection.waiting.length;
      connection.waiting = [];
    }
    const next = connection.waiting.shift();
    if (next === undefined) {
      connection.busy = false;
      connection.last?.();
      return;
    }
    this.#waiting -= 1;
    if (connection.waiting.length === 0) {
      connection.release?.();
      connection.release = undefined;
    }
    this.#starts.run(() => this.#start(handler, next.request, next.response));
  }
}
