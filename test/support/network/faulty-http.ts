/** An HTTP proxy before an object store. It can lose, delay, alter and refuse requests. It buffers their bodies. */
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Faults {
  /** The proxy answers by itself, with this status. */
  status?: number;
  /** Changes the body of a request. */
  alter?: (body: Buffer) => Buffer;
  /** This many bytes of a reply's body pass. Then the connection is silent or cut, by `ending`. */
  passBytes?: number;
  ending?: 'silence' | 'cut';
  /** The connection is cut in the middle of a request's body. */
  cutRequests?: boolean;
  /** Each reply waits for this time. */
  delayMs?: number;
}

export interface FaultyHttp {
  readonly port: number;
  /** Requests so far. */
  requests: number;
  /** The largest number of requests that were under way at one time. */
  mostAtOnce: number;
  faults: Faults;
  close(): Promise<void>;
}

export async function startFaultyHttp(targetPort: number): Promise<FaultyHttp> {
  let underWay = 0;
  const server = createServer((incoming, reply) => {
    proxy.requests += 1;
    underWay += 1;
    proxy.mostAtOnce = Math.max(proxy.mostAtOnce, underWay);
    reply.once('close', () => {
      underWay -= 1;
    });
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => {
      parts.push(part);
      if (proxy.faults.cutRequests === true) incoming.destroy();
    });
    // Clients that give up in the middle are part of these tests.
    incoming.on('error', () => undefined);
    incoming.on('end', () =>
      setTimeout(pass, proxy.faults.delayMs ?? 0, incoming, reply, Buffer.concat(parts)),
    );
  });

  function pass(incoming: IncomingMessage, reply: ServerResponse, body: Buffer): void {
    const { status, alter, passBytes, ending } = proxy.faults;
    if (status !== undefined) {
      reply.writeHead(status).end();
      return;
    }
    const { url, method, headers } = incoming;
    const outgoing = request(
      { port: targetPort, host: '127.0.0.1', path: url, method, headers },
      (answer) => {
        reply.writeHead(answer.statusCode ?? 500, answer.headers);
        if (passBytes === undefined || method !== 'GET') {
          answer.pipe(reply);
          return;
        }
        let left = passBytes;
        answer.on('data', (part: Buffer) => {
          if (left <= 0) return;
          reply.write(part.subarray(0, left));
          left -= part.length;
          if (left <= 0 && ending === 'cut') setImmediate(() => reply.destroy());
        });
      },
    );
    outgoing.on('error', () => reply.destroy());
    outgoing.end(alter === undefined || body.length === 0 ? body : alter(body));
  }

  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const proxy: FaultyHttp = {
    port: (server.address() as AddressInfo).port,
    requests: 0,
    mostAtOnce: 0,
    faults: {},
    close: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
  return proxy;
}
