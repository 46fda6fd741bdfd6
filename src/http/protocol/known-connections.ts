/**
 * Bounds the connections of a listener. Anybody who reaches it can open connections and send nothing, even from the address
 * of a known caller (a host, or a proxy). So if there are too many, the oldest connection without a known caller is closed,
 * and the new one is served.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Open connections, idle ones included. */
export interface ConnectionBounds {
  readonly all: number;
  readonly ofAddress: number;
}

export class KnownConnections {
  /** Oldest first, by the client's address and port, because over TLS the socket of a request is not that of its connection. */
  readonly #open = new Map<string, { readonly socket: Socket; isKnown: boolean }>();
  readonly #bounds: ConnectionBounds;
  readonly #onClosed: () => void;

  /** `onClosed` is called after a connection was closed because there were too many. */
  constructor(server: Server, bounds: ConnectionBounds, onClosed: () => void) {
    this.#bounds = bounds;
    this.#onClosed = onClosed;
    server.on('connection', (socket: Socket) => this.#add(socket));
  }

  /** The caller of this connection is known: it stays open. */
  known(socket: Socket): void {
    const connection = this.#open.get(placeOf(socket));
    if (connection !== undefined) connection.isKnown = true;
  }

  #add(socket: Socket): void {
    const place = placeOf(socket);
    this.#open.set(place, { socket, isKnown: false });
    socket.once('close', () => this.#open.delete(place));
    const ofAddress = [...this.#open.values()].filter(
      (other) => other.socket.remoteAddress === socket.remoteAddress,
    );
    if (ofAddress.length > this.#bounds.ofAddress) this.#closeOne(ofAddress);
    else if (this.#open.size > this.#bounds.all) this.#closeOne([...this.#open.values()]);
  }

  /** The new connection is the last, and is closed if the callers of all others are known. */
  #closeOne(connections: readonly { readonly socket: Socket; readonly isKnown: boolean }[]): void {
    const socket = connections.find(({ isKnown }) => !isKnown)?.socket;
    if (socket === undefined) return;
    this.#open.delete(placeOf(socket));
    socket.destroy();
    this.#onClosed();
  }
}

function placeOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
