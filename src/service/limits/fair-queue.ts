/**
 * Divides a resource that runs a few pieces of work at a time among tenants, by their work and not by the number of their
 * requests. This is start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). The start tag of a piece is the later of
 * two times: the virtual time of the queue, and the end of the tenant's piece before it. The piece with the smallest tag runs
 * next. So a tenant that has had little work done comes before one that has had much.
 *
 * A piece that takes longer than its estimate counts as what it took. A queue may bound how many long pieces run at a time. Then
 * a place is left for short ones, which never wait long.
 */
import { unavailable } from '../../errors.ts';
import { once } from '../once.ts';
import { longWork, tenantWorkMax, tooMuchWaits, unitsPerMs } from './work.ts';

export interface FairQueueOptions {
  /** Pieces that run at the same time. */
  readonly runningMax: number;
  /** Long pieces that run at the same time; absent = as many as all. */
  readonly longRunningMax?: number;
}

export interface Piece {
  /** In units (`work.ts`). */
  readonly work: number;
  /** Milliseconds since the epoch. A piece that still waits then is dropped. So is one whose `signal` aborts. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** The place of a request in the queue. Its pieces run from there. */
export interface Place {
  run<T>(piece: Piece, task: () => Promise<T>): Promise<T>;
  leave(): void;
}

const waitedTooLong = 'the request waited for its turn until its deadline';

interface Waiting {
  readonly startTag: number;
  readonly isLong: boolean;
  readonly start: () => void;
}

/** The state of one tenant. */
interface Line {
  readonly tenantId: string;
  /** The virtual time at which its next piece begins. */
  nextTag: number;
  /** The work of its requests that have a place, and their number. */
  work: number;
  places: number;
  readonly waiting: Waiting[];
}

export class FairQueue {
  readonly #runningMax: number;
  readonly #longRunningMax: number;
  readonly #lines = new Map<string, Line>();
  #virtualTime = 0;
  #running = 0;
  #longRunning = 0;

  constructor({ runningMax, longRunningMax = runningMax }: FairQueueOptions) {
    this.#runningMax = runningMax;
    this.#longRunningMax = longRunningMax;
  }

  get size(): number {
    return this.#lines.size;
  }

  /** Whether a piece waits for its turn. */
  get hasWaiting(): boolean {
    return [...this.#lines.values()].some(({ waiting }) => waiting.length > 0);
  }

  /**
   * Gives a request of about this much work a place.
   * @throws {ServiceError} `service_unavailable` when the tenant's requests together ask for too much.
   */
  enter(tenantId: string, work: number): Place {
    const line = this.#lineOf(tenantId);
    if (line.places > 0 && line.work + work > tenantWorkMax) throw tooMuchWaits(work, line.work);
    line.work += work;
    line.places += 1;
    return {
      run: (piece, task) => this.#run(line, piece, task),
      leave: once(() => {
        line.work -= work;
        line.places -= 1;
        this.#forget(line);
      }),
    };
  }

  async run<T>(tenantId: string, piece: Piece, task: () => Promise<T>): Promise<T> {
    const place = this.enter(tenantId, piece.work);
    try {
      return await place.run(piece, task);
    } finally {
      place.leave();
    }
  }

  async #run<T>(line: Line, piece: Piece, task: () => Promise<T>): Promise<T> {
    const isLong = piece.work > longWork;
    await this.#turn(line, piece, isLong);
    const startedAt = performance.now();
    try {
      return await task();
    } finally {
      line.nextTag += Math.max(0, (performance.now() - startedAt) * unitsPerMs - piece.work);
      this.#running -= 1;
      if (isLong) this.#longRunning -= 1;
      this.#serve();
    }
  }

  #turn(line: Line, { work, deadlineMs, signal }: Piece, isLong: boolean): Promise<void> | undefined {
    signal?.throwIfAborted();
    const startTag = Math.max(this.#virtualTime, line.nextTag);
    line.nextTag = startTag + work;
    if (line.waiting.length === 0 && this.#hasRoom(isLong)) {
      this.#take(startTag, isLong);
      return undefined;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const settled = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const waiting: Waiting = {
      startTag,
      isLong,
      start: () => {
        settled();
        resolve();
      },
    };
    const drop = (reason: Error): void => {
      settled();
      line.waiting.splice(line.waiting.indexOf(waiting), 1);
      line.nextTag -= work;
      reject(reason);
      // Pieces that waited behind it may run now.
      this.#serve();
    };
    const onAbort = (): void => drop(signal?.reason as Error);
    const timer =
      deadlineMs === undefined
        ? undefined
        : setTimeout(() => drop(unavailable(waitedTooLong)), Math.max(1, deadlineMs - Date.now()));
    signal?.addEventListener('abort', onAbort, { once: true });
    line.waiting.push(waiting);
    return promise;
  }

  #hasRoom(isLong: boolean): boolean {
    return this.#running < this.#runningMax && (!isLong || this.#longRunning < this.#longRunningMax);
  }

  #take(startTag: number, isLong: boolean): void {
    this.#virtualTime = Math.max(this.#virtualTime, startTag);
    this.#running += 1;
    if (isLong) this.#longRunning += 1;
  }

  #serve(): void {
    for (;;) {
      let next: { readonly line: Line; readonly first: Waiting } | undefined;
      for (const line of this.#lines.values()) {
        const [first] = line.waiting;
        if (first === undefined || !this.#hasRoom(first.isLong)) continue;
        if (next === undefined || first.startTag < next.first.startTag) next = { line, first };
      }
      if (next === undefined) break;
      next.line.waiting.shift();
      this.#take(next.first.startTag, next.first.isLong);
      next.first.start();
    }
    if (this.#running === 0) this.#forgetAll();
  }

  #lineOf(tenantId: string): Line {
    let line = this.#lines.get(tenantId);
    if (line === undefined) {
      line = { tenantId, nextTag: 0, work: 0, places: 0, waiting: [] };
      this.#lines.set(tenantId, line);
    }
    return line;
  }

  /** Forgets a tenant without requests. One that has had more than the others is remembered until they have caught up. */
  #forget(line: Line): void {
    if (line.places === 0 && line.nextTag <= this.#virtualTime) this.#lines.delete(line.tenantId);
  }

  /** Called when nothing runs: then no tenant has had more than another. */
  #forgetAll(): void {
    for (const line of this.#lines.values()) {
      line.nextTag = Math.min(line.nextTag, this.#virtualTime);
      this.#forget(line);
    }
  }
}
