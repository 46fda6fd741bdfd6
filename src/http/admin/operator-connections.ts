/**
 * Bounds the connections of the admin API. Anybody who reaches the listener can open connections and send nothing, even from
 * the address of an operator (a host, or a proxy). So if there are too many, the oldest connection without an admitted
 * operator is closed, and the new one is served.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Open connections, idle ones included: in all, and from one address. */
const bounds = { all: 100, ofAddress: 50 } as const;

export class OperatorConnections {
  /** Oldest first, by the client's address and port, because over TLS the socket of a request is not that of its connection. */
  readonly #open = new Map<string, { readonly socket: Socket; isOperator: boolean }>();
  readonly #onClosed: () => void;

  /** `onClosed` is called after a connection was closed because there were too many. */
  constructor(server: Server, onClosed: () => void) {
    this.#onClosed = onClosed;
    server.on('connection', (socket: Socket) => this.#add(socket));
  }

  /** The connection is an operator's: it stays open. */
  admitted(socket: Socket): void {
    const connection = this.#open.get(placeOf(socket));
    if (connection !== undefined) connection.isOperator = true;
  }

  #add(socket: Socket): void {
    const place = placeOf(socket);
    this.#open.set(place, { socket, isOperator: false });
    socket.once('close', () => this.#open.delete(place));
    const ofAddress = [...this.#open.values()].filter(
      (other) => other.socket.remoteAddress === socket.remoteAddress,
    );
    if (ofAddress.length > bounds.ofAddress) this.#closeOne(ofAddress);
    else if (this.#open.size > bounds.all) this.#closeOne([...this.#open.values()]);
  }

  /** The new connection is the last, and is closed if all others are operators'. */
  #closeOne(connections: readonly { readonly socket: Socket; readonly isOperator: boolean }[]): void {
    const socket = connections.find(({ isOperator }) => !isOperator)?.socket;
    if (socket === undefined) return;
    this.#open.delete(placeOf(socket));
    socket.destroy();
    this.#onClosed();
  }
}

function placeOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
