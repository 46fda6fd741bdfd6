/**
 * Gathers the bytes of one body from a stream. A client chooses the size of its chunks, and Node spends an object of some 300
 * bytes and a microsecond on each. So pieces are copied together into blocks, and a body of many small pieces is read slowly
 * (`SmallPieces`).
 */
import type { Readable } from 'node:stream';
import { holdStream } from '../protocol/held-stream.ts';
import type { BodyPlace } from './body-room.ts';
import type { PiecesOfBody, SmallPieces } from './small-pieces.ts';

export interface GatherOptions {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  /** Is not read while there is no room: the stream itself, or its connection. */
  readonly held: Readable;
  /** A place for a body of more than `smallBodyBytes`. `lose` is called if the body loses its place. */
  readonly openPlace: (lose: (reason: Error) => void) => BodyPlace;
  readonly smallPieces: SmallPieces;
  readonly errors: {
    readonly tooLarge: () => Error;
    readonly late: () => Error;
    readonly broken: () => Error;
  };
}

export interface GatheredBody {
  readonly bytes: Buffer;
  readonly leave: () => void;
}

/** Bodies up to this size take no room. Searches are among them, so they do not wait for uploads. */
export const smallBodyBytes = 64 * 1024;
/** The size of a block, and of the steps in which a body takes room. */
const blockBytes = 64 * 1024;

export function gather(stream: Readable, options: GatherOptions): Promise<GatheredBody> {
  return new Promise((resolve, reject) => new Gathering(stream, options, { resolve, reject }).start());
}

interface Settle {
  readonly resolve: (body: GatheredBody) => void;
  readonly reject: (reason: Error) => void;
}

class Gathering {
  readonly #stream: Readable;
  readonly #options: GatherOptions;
  readonly #settle: Settle;
  readonly #blocks = new Blocks();
  readonly #pieces: PiecesOfBody;
  readonly #hold: Hold;
  #place: BodyPlace | undefined;
  #roomBytes = 0;
  #isTakingRoom = false;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: Readable, options: GatherOptions, settle: Settle) {
    this.#stream = stream;
    this.#options = options;
    this.#settle = settle;
    this.#pieces = options.smallPieces.ofBody();
    this.#hold = new Hold(options.held);
  }

  start(): void {
    const { errors, timeoutMs } = this.#options;
    this.#timer = setTimeout(() => this.#fail(errors.late()), timeoutMs);
    const { data, end, broken } = this.#listeners;
    this.#stream.on('data', data).on('end', end).on('error', broken).on('close', broken);
  }

  readonly #listeners = {
    data: (piece: Buffer) => this.#add(piece),
    end: () => {
      this.#hasEnded = true;
      if (!this.#isTakingRoom) this.#finish();
    },
    // A stream also closes after its end, and by then the body may still wait for room.
    broken: () => {
      if (!this.#hasEnded) this.#fail(this.#options.errors.broken());
    },
  };

  #add(piece: Buffer): void {
    const { bytesMax, errors } = this.#options;
    if (this.#blocks.length + piece.length > bytesMax) return this.#fail(errors.tooLarge());
    this.#blocks.add(piece);
    const wait = this.#pieces.wait(piece.length);
    if (wait !== undefined) void this.#hold.during('pieces', wait);
    if (this.#blocks.length > smallBodyBytes && !this.#isTakingRoom) void this.#takeRoom();
  }

  /** Takes room for all bytes so far. Nothing is read while it waits, but the rest of the current read still arrives. */
  async #takeRoom(): Promise<void> {
    this.#isTakingRoom = true;
    this.#place ??= this.#options.openPlace((reason) => this.#fail(reason));
    while (this.#roomBytes < this.#blocks.length) {
      const bytes = Math.ceil((this.#blocks.length - this.#roomBytes) / blockBytes) * blockBytes;
      this.#roomBytes += bytes;
      const entered = this.#place.take(bytes);
      if (entered === undefined) continue;
      this.#hold.begin('room');
      await entered;
    }
    this.#isTakingRoom = false;
    this.#hold.end('room');
    if (this.#hasEnded) this.#finish();
  }

  #finish(): void {
    this.#stop();
    this.#place?.arrived();
    this.#settle.resolve({ bytes: this.#blocks.whole(), leave: () => this.#place?.leave() });
  }

  #fail(reason: Error): void {
    this.#stop();
    this.#place?.leave();
    // Further bytes are discarded until the answer ends the connection.
    this.#stream.on('error', () => {}).resume();
    this.#settle.reject(reason);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    const { data, end, broken } = this.#listeners;
    this.#stream.off('data', data).off('end', end).off('error', broken).off('close', broken);
    this.#hold.endAll();
  }
}

/** Pauses a stream while there is at least one reason. */
class Hold {
  readonly #stream: Readable;
  readonly #reasons = new Set<string>();
  #release: (() => void) | undefined;

  constructor(stream: Readable) {
    this.#stream = stream;
  }

  async during(reason: string, work: Promise<void>): Promise<void> {
    this.begin(reason);
    await work;
    this.end(reason);
  }

  begin(reason: string): void {
    this.#reasons.add(reason);
    this.#release ??= holdStream(this.#stream);
  }

  end(reason: string): void {
    this.#reasons.delete(reason);
    if (this.#reasons.size === 0) this.endAll();
  }

  endAll(): void {
    this.#release?.();
    this.#release = undefined;
  }
}

/** Pieces copied together. The first is not copied, because a small body has no other. */
class Blocks {
  readonly #full: Buffer[] = [];
  #block = Buffer.alloc(0);
  #used = 0;
  length = 0;

  add(piece: Buffer): void {
    if (this.length === 0) this.#full.push(piece);
    else for (let at = 0; at < piece.length;) at += this.#copy(piece, at);
    this.length += piece.length;
  }

  whole(): Buffer {
    const parts = this.#used === 0 ? this.#full : [...this.#full, this.#block.subarray(0, this.#used)];
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts, this.length);
  }

  #copy(piece: Buffer, from: number): number {
    if (this.#used === this.#block.length) {
      this.#block = Buffer.allocUnsafeSlow(blockBytes);
      this.#used = 0;
    }
    const copied = piece.copy(this.#block, this.#used, from);
    this.#used += copied;
    if (this.#used === this.#block.length) {
      this.#full.push(this.#block);
      this.#block = Buffer.alloc(0);
      this.#used = 0;
    }
    return copied;
  }
}
