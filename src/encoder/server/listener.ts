/**
 * Listens for the gRPC server, and hands it connections whose writes never wait.
 *
 * Node's HTTP/2 reads nothing from a connection while a write to it waits for room in the socket. Two such ends that write
 * at a time and have filled both directions wait for each other for ever; small messages fill a socket long before
 * HTTP/2's windows end (docs/decisions/0082-an-encoder-s-writes-never-wait.md). It is enough that one end goes on reading. This is the end: what the socket
 * does not take is kept in memory. The windows of the client bound the answers among it; the rest is a few bytes a call.
 */
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** Kept for one connection at most; one that leaves more unread is closed. */
const keptBytesMax = 4 << 20;

/** `unix:/path` or `host:port`, as gRPC names them. */
export async function listen(address: string, onConnection: (connection: Duplex) => void): Promise<Server> {
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
    // Without an error the client still gets what is kept for it.
    if (error === null) this.#socket.destroySoon();
    else this.#socket.destroy();
    destroyed(error);
  }

  #bound(): void {
    if (this.#socket.writableLength > keptBytesMax) this.destroy(new Error('the client does not read'));
  }
}
