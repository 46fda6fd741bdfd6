/**
 * Divides what can do a few pieces of work at a time among tenants, by the work that they ask for and not by the number of
 * their requests: start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). Each piece has a start tag, the
 * later of the queue's virtual time and the end of the tenant's piece before it; the smallest tag is served next. Whoever
 * has had little is served before whoever has had much.
 *
 * A piece that took longer than its estimate counts as what it took. Long pieces never take the last place: a short one
 * always finds one soon.
 */
import { unavailable } from '../../errors.ts';
import { tenantWorkMax, tooMuchWaits, unitsPerMs } from './work.ts';

export interface FairQueueOptions {
  /** Pieces that run at the same time. */
  readonly runningMax: number;
  /** Long pieces that do. */
  readonly longRunningMax?: number;
}

export interface Piece {
  /** In units (`work.ts`). */
  readonly work: number;
  /** One that still waits then, or whose caller leaves, is dropped; absent = it waits for its turn. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** A request's place in the queue, for the pieces that it consists of. */
export interface Place {
  run<T>(piece: Piece, task: () => Promise<T>): Promise<T>;
  leave(): void;
}

/** Work beyond which a piece is long: ten milliseconds. */
const longWork = 100;

const waitedTooLong = 'the request waited for its turn until its deadline';

interface Waiting {
  readonly startTag: number;
  readonly isLong: boolean;
  readonly start: () => void;
}

interface Line {
  readonly tenantId: string;
  /** Where its next piece begins, in virtual time. */
  nextTag: number;
  /** That its requests with a place ask for. */
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

  /** Tenants that are remembered. */
  get size(): number {
    return this.#lines.size;
  }

  /**
   * A place for a request of about so much work.
   * @throws {ServiceError} `service_unavailable` when the tenant's requests ask for too much together.
   */
  enter(tenantId: string, work: number): Place {
    const line = this.#lineOf(tenantId);
    if (line.places > 0 && line.work + work > tenantWorkMax) throw tooMuchWaits(work, line.work);
    line.work += work;
    line.places += 1;
    let left = false;
    return {
      run: (piece, task) => this.#run(line, piece, task),
      leave: () => {
        if (left) return;
        left = true;
        line.work -= work;
        line.places -= 1;
        this.#forget(line);
      },
    };
  }

  /** Runs one piece that is a request's only one. */
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
      // What waited behind it may run.
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

  /** A tenant that is ahead of the others is remembered until they have caught up. */
  #forget(line: Line): void {
    if (line.places === 0 && line.nextTag <= this.#virtualTime) this.#lines.delete(line.tenantId);
  }

  /** Nothing runs: nobody is ahead any more. */
  #forgetAll(): void {
    for (const line of this.#lines.values()) {
      line.nextTag = Math.min(line.nextTag, this.#virtualTime);
      this.#forget(line);
    }
  }
}
