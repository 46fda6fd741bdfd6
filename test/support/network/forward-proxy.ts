/** A forward proxy, as companies have one. It sends every request to `target`, and records what it was asked for. */
import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface ForwardProxy {
  readonly url: string;
  /** Method and target of each request that the proxy received. */
  readonly requests: string[];
  close(): Promise<void>;
}

/** Starts a proxy. Without `target` it refuses everything with 502. */
export async function startForwardProxy(target: URL | undefined): Promise<ForwardProxy> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    if (target === undefined) {
      response.writeHead(502).end();
      return;
    }
    const { pathname, search } = new URL(request.url ?? '', 'http://no-absolute-form');
    const { method, headers } = request;
    const onward = ask(new URL(pathname + search, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('connect', (request, socket: Socket) => {
    requests.push(`CONNECT ${request.url}`);
    if (target === undefined) {
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return;
    }
    const onward = connect(Number(target.port), target.hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    for (const end of [socket, onward]) end.on('error', () => end.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
