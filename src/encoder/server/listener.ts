/**
 * Listens for the gRPC server, and gives it connections whose writes never wait.
 *
 * Node's HTTP/2 reads nothing from a connection while a write to it waits for room in the socket. If both ends write at the same
 * time and fill both directions, they wait for each other for ever. Small messages fill a socket long before HTTP/2's windows are
 * used up (docs/decisions/0082-an-encoder-s-writes-never-wait.md). It is enough that one end goes on reading, and that is this one:
 * bytes that the socket does not take are kept in memory. The client's windows bound the answers among them. The rest is a few
 * bytes per call.
 */
import { rm, stat } from 'node:fs/promises';
import { connect, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** A connection that leaves more bytes unread than these is closed. */
const keptBytesMax = 4 << 20;

/** `address`: `unix:/path` or `host:port`, as in gRPC. */
export async function listen(address: string, onConnection: (connection: Duplex) => void): Promise<Server> {
  await removeStaleSocket(address);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    onConnection(new KeptConnection(socket)),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listenOptions(address), () => {
      server.off('error', reject);
      resolve();
    });
  });
  return server;
}

function listenOptions(address: string): ListenOptions {
  if (address.startsWith('unix:')) return { path: address.slice('unix:'.length) };
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port: Number(address.slice(at + 1)) };
}

/**
 * The file of a unix socket outlives a killed process. Removes the file of `unix:/path` when no process listens on it, and ignores
 * other addresses and files.
 */
async function removeStaleSocket(address: string): Promise<void> {
  if (!address.startsWith('unix:')) return;
  const file = address.slice('unix:'.length);
  const found = await stat(file).catch(() => undefined);
  if (found?.isSocket() === true && !(await isListening(file))) await rm(file, { force: true });
}

async function isListening(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(file);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

class KeptConnection extends Duplex {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on('data', (chunk) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, taken: () => void): void {
    this.#socket.write(chunk);
    this.#bound();
    taken();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], taken: () => void): void {
    this.#socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    this.#bound();
    taken();
  }

  override _final(ended: () => void): void {
    this.#socket.end();
    ended();
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    // Without an error the client still gets the bytes that are kept for it.
    if (error === null) this.#socket.destroySoon();
    else this.#socket.destroy();
    destroyed(error);
  }

  #bound(): void {
    if (this.#socket.writableLength > keptBytesMax) this.destroy(new Error('the client does not read'));
  }
}
