/** The Node server below Fastify: its clocks, TLS, and the answers that Node would otherwise give itself. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { RouteTimeouts } from './admission.ts';
import { answerProtocolEvents } from './protocol.ts';
import type { ProtocolObserver } from './protocol.ts';

export interface HttpTimeouts extends RouteTimeouts {
  /** A request's header must be complete. */
  readonly headersMs: number;
  /** A request's body must be complete, from when it is read. */
  readonly bodyMs: number;
  /** An idle connection is kept; longer than the 60 s of common load balancers. */
  readonly keepAliveMs: number;
  /** How often Node looks for connections past their time. */
  readonly checkMs: number;
}

export const defaultHttpTimeouts: HttpTimeouts = {
  searchMs: 10_000,
  upsertMs: 120_000,
  headersMs: 10_000,
  bodyMs: 60_000,
  keepAliveMs: 75_000,
  checkMs: 1_000,
};

/** PEM. */
export interface TlsIdentity {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

export function createListener(
  handler: RequestListener,
  options: {
    readonly tls: TlsIdentity | undefined;
    readonly timeouts: HttpTimeouts;
    readonly observer: ProtocolObserver;
  },
): Server {
  const { tls, timeouts, observer } = options;
  const settings = {
    headersTimeout: timeouts.headersMs,
    // The backstop: also bounds what a refused request may go on sending.
    requestTimeout: timeouts.headersMs + timeouts.bodyMs + timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkMs,
    // Checked in the first hook, which answers with the contract's body.
    requireHostHeader: false,
  };
  const server =
    tls === undefined
      ? createServer(settings, handler)
      : createSecureServer({ ...settings, ...tls }, handler);
  // A silent connection; above every deadline, since a client waits in silence.
  server.setTimeout(Math.max(timeouts.searchMs, timeouts.upsertMs) + timeouts.bodyMs + 30_000);
  answerProtocolEvents(server, observer);
  return server;
}
