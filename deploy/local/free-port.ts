/** Ports for servers that are told theirs before they start. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const ports = { first: 10_000, end: 32_768 };
let nextPort = randomInt(ports.first, ports.end);

/**
 * Free a moment ago, and given once by this process. It lies below the ports that systems give to outgoing connections,
 * so that none of those takes it before the server does.
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
