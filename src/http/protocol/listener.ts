/** The Node server below Fastify: its timeouts, TLS, and the answers that Node would otherwise give itself. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { RouteTimeouts } from '../admission.ts';
import type { ConnectionTurns } from './connection-turns.ts';
import { answerProtocolEvents } from './protocol.ts';
import type { ProtocolObserver } from './protocol.ts';
import { endUnreadBehind } from './unread-body.ts';

export interface HttpTimeouts extends RouteTimeouts {
  /** Time for the header of a request, and for a TLS handshake. */
  readonly headersMs: number;
  readonly bodyMs: number;
  /** How long a large body waits for room, within `bodyMs`. */
  readonly bodyWaitMs: number;
  /** After this wait a large body takes the place of a slower one. */
  readonly bodyPatienceMs: number;
  /** A client that takes no byte of its answer for this long is disconnected. */
  readonly answerMs: number;
  /** How long an idle connection is kept: longer than the 60 s of common load balancers. */
  readonly keepAliveMs: number;
  readonly checkMs: number;
}

export const defaultHttpTimeouts: HttpTimeouts = {
  searchMs: 10_000,
  upsertMs: 120_000,
  headersMs: 10_000,
  bodyMs: 60_000,
  bodyWaitMs: 5_000,
  bodyPatienceMs: 1_000,
  answerMs: 30_000,
  keepAliveMs: 75_000,
  checkMs: 1_000,
};

export interface TlsIdentity {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** 48 bytes; listeners with the same ones resume each other's sessions. Absent = random. */
  readonly ticketKeys?: Buffer;
}

export function createListener(
  handler: RequestListener,
  options: {
    readonly tls: TlsIdentity | undefined;
    readonly timeouts: HttpTimeouts;
    readonly observer: ProtocolObserver;
    readonly turns: ConnectionTurns;
    readonly connectionsMax: number;
    /** Connections that are open now, also those of other listeners that count there. */
    readonly openConnections?: Int32Array | undefined;
  },
): Server {
  const { tls, timeouts, observer, turns } = options;
  const settings = {
    headersTimeout: timeouts.headersMs,
    // Also bounds how long the client of a refused request may go on sending.
    requestTimeout: timeouts.headersMs + timeouts.bodyMs + timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkMs,
    // Checked in the first hook, which answers with the contract's body.
    requireHostHeader: false,
  };
  // Above every deadline, because a client is silent while it waits.
  const silenceMs = Math.max(timeouts.searchMs, timeouts.upsertMs) + timeouts.bodyMs + 30_000;
  const listener = turns.inTurn((request, response) => {
    // The answer before had set a shorter time.
    request.socket.setTimeout(silenceMs);
    endUnreadBehind(request);
    handler(request, response);
  });
  const server =
    tls === undefined
      ? createServer(settings, listener)
      : createSecureServer({ ...settings, ...tls, handshakeTimeout: timeouts.headersMs }, listener);
  server.setTimeout(silenceMs);
  boundConnections(server, options);
  server.on('drop', () => observer.connectionRefused());
  answerProtocolEvents(server, observer, turns);
  return server;
}

/** Node compares a server's own connections with this property before it takes another one. */
function boundConnections(
  server: Server,
  { connectionsMax, openConnections = new Int32Array(1) }: Parameters<typeof createListener>[1],
): void {
  server.on('connection', (socket) => {
    Atomics.add(openConnections, 0, 1);
    socket.once('close', () => Atomics.sub(openConnections, 0, 1));
  });
  Object.defineProperty(server, 'maxConnections', {
    get: () => (Atomics.load(openConnections, 0) < connectionsMax ? Infinity : 0),
  });
}
