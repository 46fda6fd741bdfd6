/** Ports for servers that must know theirs before they start. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const ports = { first: 10_000, end: 32_768 };
let nextPort = randomInt(ports.first, ports.end);

/**
 * A port that was free a moment ago. This process gives it once. It lies below the ports of outgoing connections, so that none of
 * them takes it before the server does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = nextPort;
    nextPort = port + 1 < ports.end ? port + 1 : ports.first;
    if (await isFree(port)) return port;
  }
}

export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  server.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
  );
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  return promise;
}
