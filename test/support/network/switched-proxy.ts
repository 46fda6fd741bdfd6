/** An address whose new connections lead to a server that can be changed, as a virtual IP. It can hold answers back. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface SwitchedProxy {
  readonly port: number;
  /** Open connections stay where they are. */
  leadTo(port: number): void;
  /** Holds back all answers until a request with `marker` has come. */
  holdUntil(marker: string): void;
  /** Closes the address and all connections. */
  close(): void;
}

export async function startSwitchedProxy(first: number): Promise<SwitchedProxy> {
  const pairs = new Map<Socket, Socket>();
  let target = first;
  let marker: string | undefined;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    pairs.set(client, upstream);
    client.on('data', (request) => {
      upstream.write(request);
      if (marker === undefined || !request.includes(marker)) return;
      marker = undefined;
      for (const [to, from] of pairs) from.pipe(to);
    });
    upstream.pipe(client);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(client);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: (port) => {
      target = port;
    },
    holdUntil: (awaited) => {
      marker = awaited;
      for (const [to, from] of pairs) from.unpipe(to);
    },
    close: () => {
      server.close();
      for (const client of pairs.keys()) client.destroy();
    },
  };
}
