/**
 * `maxsimd mcp`: the indexes of a service as tools for agents, by the Model Context Protocol (revision 2025-11-25). Over
 * stdio the process has the key of its user. Over HTTP it has none: each request brings a key.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { ConnectionTurns } from '../../http/protocol/connection-turns.ts';
import { KnownConnections } from '../../http/protocol/known-connections.ts';
import { createListener, defaultHttpTimeouts } from '../../http/protocol/listener.ts';
import { createClientErrorHandler } from '../../http/protocol/protocol.ts';
import { clientOf, type Endpoint } from '../client.ts';
import { messageOf } from '../failure.ts';
import { HttpCallers, path, retryMsMax, type HttpCallersOptions } from './http-callers.ts';
import { LineTransport } from './line-transport.ts';
import { toolServer, type Offer } from './tool-server.ts';

/** As the admin API has it: silent connections must not stay. */
const timeouts = { ...defaultHttpTimeouts, headersMs: 3_000 };
/** A proxy has one address for all of its callers. */
const connectionBounds = { all: 512, ofAddress: 256 } as const;
/** The process has no log. */
const observer = { protocolError: () => undefined, connectionRefused: () => undefined };

export async function serveStdio(endpoint: Endpoint, offer: Offer, input: NodeJS.ReadStream): Promise<void> {
  const client = clientOf(endpoint, retryMsMax, { waitsForLimits: false });
  await toolServer(client, offer, messageOf).connect(new LineTransport(input, process.stdout));
}

export interface HttpOptions extends Omit<HttpCallersOptions, 'timeouts'> {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly interruption: AbortSignal;
  readonly onListening: (url: string) => void;
}

/** Serves until the interruption. */
export async function serveHttp(options: HttpOptions): Promise<void> {
  const { host, port, interruption, onListening } = options;
  const turns = new ConnectionTurns();
  const callers = new HttpCallers({ ...options, timeouts });
  const server = createListener(
    (request, response) => {
      callers
        .answer(request, response, () => connections.known(request.socket))
        .catch(() => response.destroy());
    },
    { tls: undefined, timeouts, observer, turns, connectionsMax: Infinity },
  );
  server.on('clientError', createClientErrorHandler(observer, turns));
  const connections = new KnownConnections(server, connectionBounds, observer.connectionRefused);
  server.listen(port, host);
  await once(server, 'listening');
  const { address, family, port: bound } = server.address() as AddressInfo;
  onListening(`http://${family === 'IPv6' ? `[${address}]` : address}:${bound}${path}`);
  if (!interruption.aborted) await once(interruption, 'abort');
  server.close();
  await once(server, 'close');
}
