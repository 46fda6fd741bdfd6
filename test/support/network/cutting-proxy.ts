/** A TCP proxy that passes everything on until it is asked to cut. */
import { createServer, connect as connectSocket, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly address: string;
  /** Cuts every connection once, after this many more bytes of replies on all connections together. */
  cutOnceAfter(bytes: number): void;
  /** Cuts every connection after this many bytes of its replies, until `stopCutting`. */
  cutAlwaysAfter(bytes: number): void;
  /** Cuts the next connection on which a request with `marker` is sent, at the moment `when`. The others stay. */
  cutAtRequest(marker: string, when: CutMoment): void;
  stopCutting(): void;
  /** Cuts made so far. */
  cuts(): number;
  close(): Promise<void>;
}

/** The moment of a cut: half or all of the request has been sent, or this many bytes of its reply have come. */
export type CutMoment = 'half' | 'sent' | number;

/** `target` is a `host:port`. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const [host, port] = target.split(':');
  const sockets = new Set<Socket>();
  let plan: { left: number; readonly again: number | undefined } | undefined;
  let wanted: { readonly marker: string; readonly when: CutMoment } | undefined;
  let cuts = 0;

  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    const upstream = connectSocket(Number(port), host);
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      // A cut connection may end with any error.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        peer.destroy();
      });
    }
    /** Bytes of replies that pass before this connection is cut. */
    let left = Infinity;
    const cut = (): void => {
      cuts += 1;
      client.destroy();
      upstream.destroy();
    };
    client.on('data', (chunk: Buffer) => {
      if (wanted === undefined || !chunk.includes(wanted.marker)) {
        upstream.write(chunk);
        return;
      }
      const { when } = wanted;
      wanted = undefined;
      if (when === 'half') upstream.write(chunk.subarray(0, chunk.length / 2), cut);
      else if (when === 'sent') upstream.write(chunk, cut);
      else {
        left = when;
        upstream.write(chunk);
      }
    });
    upstream.on('data', (chunk: Buffer) => {
      if (chunk.length > left) {
        client.write(chunk.subarray(0, left), cut);
        left = Infinity;
        return;
      }
      left -= chunk.length;
      if (plan === undefined || chunk.length <= plan.left) {
        if (plan !== undefined) plan.left -= chunk.length;
        client.write(chunk);
        return;
      }
      const { left: passed, again } = plan;
      plan = again === undefined ? undefined : { left: again, again };
      cuts += 1;
      client.write(chunk.subarray(0, passed), destroyAll);
    });
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutOnceAfter: (bytes) => {
      plan = { left: bytes, again: undefined };
    },
    cutAlwaysAfter: (bytes) => {
      plan = { left: bytes, again: bytes };
    },
    cutAtRequest: (marker, when) => {
      wanted = { marker, when };
    },
    stopCutting: () => {
      plan = undefined;
      wanted = undefined;
    },
    cuts: () => cuts,
    close: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      destroyAll();
      await closed.promise;
    },
  };
}
