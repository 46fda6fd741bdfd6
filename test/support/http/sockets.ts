/** Raw sockets to a server that listens, for requests that `inject()` cannot make. */
import { connect, type AddressInfo, type Server, type Socket } from 'node:net';

interface Listener {
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  readonly server: Server;
}

/** Listens on any free port of the loopback address. */
export async function listen({ app }: { readonly app: Listener }): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

/** Sends bytes as they are and resolves with everything that comes back until the server closes. */
export async function exchange(port: number, ...pieces: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('utf8');
  let received = '';
  socket.on('data', (piece: string) => (received += piece));
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
    socket.on('error', () => resolve());
  });
  for (const piece of pieces) socket.write(piece);
  await closed;
  return received;
}

/** Opens a connection, sends bytes, and leaves it open. */
export async function open(port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(bytes);
  return socket;
}
