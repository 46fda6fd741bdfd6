/** One request over a connection of its own, whose body is written by hand. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Attacker } from './attacks.ts';

export interface OpenBody extends AsyncDisposable {
  /** False when the answer is there, or the connection has gone. */
  write(bytes: string | Buffer): Promise<boolean>;
  /** The status of the answer; 0 when none came before the connection or the attack ended. */
  status(): Promise<number>;
}

export function openBody(
  { url, apiKey }: Attacker,
  path: string,
  framing: string,
  until: AbortSignal,
): OpenBody {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const answered = Promise.withResolvers<number>();
  let isOver = false;
  const finish = (status: number): void => {
    isOver = true;
    answered.resolve(status);
    socket.destroy();
  };
  const onAbort = (): void => finish(0);
  until.addEventListener('abort', onAbort);
  socket.once('data', (bytes) =>
    finish(Number(/^HTTP\/1\.1 (\d+)/.exec(bytes.toString('latin1'))?.[1] ?? 0)),
  );
  socket.on('error', () => finish(0)).once('close', () => finish(0));
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${apiKey}`,
    'content-type: application/json',
    framing,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  if (until.aborted) finish(0);
  return {
    write: async (bytes) => {
      if (!isOver && !socket.write(bytes)) {
        await Promise.race([once(socket, 'drain').catch(() => undefined), answered.promise]);
      }
      return !isOver;
    },
    status: () => answered.promise,
    [Symbol.asyncDispose]: async () => {
      until.removeEventListener('abort', onAbort);
      socket.destroy();
    },
  };
}
