/**
 * Upserts that end together share a delta, its objects and a transaction, in which each is decided alone. An upsert alone
 * goes at once; those that come while it is on its way go together when it has landed.
 *
 * All versions of a segment are born in the transaction that names it: a node that lacks the segment learns of all of them.
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../../document-commits.ts';
import { ServiceError } from '../../errors.ts';
import type { RecordLocation } from '../../index-state.ts';
import type { PlacedRecords } from '../contract.ts';
import type { NativeRecord } from '../engine/native.ts';
import type { ClusterIndexCatalog } from './cluster-catalog.ts';
import { appendTo, nameDelta, openDelta, sealAndPut, type Delta, type DeltaDeps } from './deltas.ts';

export interface UpsertDeps extends DeltaDeps {
  readonly catalog: DeltaDeps['catalog'] & Pick<ClusterIndexCatalog, 'commitUpserts'>;
  /** Token vectors at which a delta is full. */
  readonly tokenVectorsMax: number;
  /** Deltas that a commit may have named, or that none ever will; never rejects. */
  readonly onEnd: (deltas: readonly Delta[], isCommitted: boolean) => void;
}

/** What an upsert commits, once it is known where its records lie. */
export type UpsertOf = (placed: PlacedRecords) => CommitUpsertInput;

interface Waiting {
  readonly records: readonly NativeRecord[];
  readonly upsert: UpsertOf;
  readonly done: PromiseWithResolvers<CommitUpsertResult>;
}

/** Far beyond a put and a commit: what hangs holds nobody else up. */
const waitMsMax = 200;
/** In a group. A transaction with more than 64 parts slows down every other one in PostgreSQL; an upsert is two. */
const upsertsMax = 32;
/** Far below the time after which the catalog takes a name for garbage. */
const nameMsMax = 3_600_000;

export class UpsertGroups {
  readonly #deps: UpsertDeps;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #flights = 0;
  /** The next group has its name already: naming takes the catalog a transaction. */
  #name: { readonly delta: Promise<Delta>; readonly madeAtMs: number } | undefined;

  constructor(deps: UpsertDeps) {
    this.#deps = deps;
  }

  commit(records: readonly NativeRecord[], upsert: UpsertOf): Promise<CommitUpsertResult> {
    const done = Promise.withResolvers<CommitUpsertResult>();
    this.#waiting.push({ records, upsert, done });
    if (this.#flights === 0) this.#depart();
    else this.#timer ??= setTimeout(() => this.#depart(), waitMsMax);
    return done.promise;
  }

  #depart(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, upsertsMax);
      this.#flights += 1;
      void this.#fly(group).finally(() => {
        this.#flights -= 1;
        if (this.#flights === 0) this.#depart();
      });
    }
  }

  /** Never rejects. */
  async #fly(group: readonly Waiting[]): Promise<void> {
    const named = this.#takeName();
    try {
      const delta = await named;
      await openDelta(this.#deps, delta);
      const results = await this.#commit(delta, group).catch((error: unknown) => {
        this.#deps.onEnd([delta], false);
        throw error;
      });
      const isCommitted = results.some(
        (result) => result.status === 'fulfilled' && result.value.outcome === 'committed',
      );
      this.#deps.onEnd([delta], isCommitted);
      for (const [place, { done }] of group.entries()) settle(done, results[place]);
    } catch (error) {
      // What is wrong may be one of them: the others are not refused for it.
      const isAway = error instanceof ServiceError && error.code === 'service_unavailable';
      if (group.length > 1 && !isAway) {
        for (const alone of group) await this.#fly([alone]);
      } else for (const { done } of group) done.reject(error);
    }
  }

  async #commit(
    delta: Delta,
    group: readonly Waiting[],
  ): Promise<readonly PromiseSettledResult<CommitUpsertResult>[]> {
    const locations: RecordLocation[][] = [];
    for (const { records } of group) {
      const own: RecordLocation[] = [];
      for (const record of records) own.push(await appendTo(this.#deps, delta, record));
      locations.push(own);
    }
    const segments = [await sealAndPut(this.#deps, delta)];
    return await this.#deps.catalog.commitUpserts(
      group.map(({ upsert }, place) => upsert({ locations: locations[place] ?? [], segments })),
    );
  }

  /** And has the next one made. */
  #takeName(): Promise<Delta> {
    const nowMs = performance.now();
    const known = this.#name;
    const isKept = known !== undefined && nowMs - known.madeAtMs < nameMsMax;
    const delta = isKept ? known.delta : nameDelta(this.#deps);
    const next = { delta: nameDelta(this.#deps), madeAtMs: nowMs };
    this.#name = next;
    next.delta.catch(() => {
      if (this.#name === next) this.#name = undefined;
    });
    return delta;
  }
}

function settle<T>(done: PromiseWithResolvers<T>, result: PromiseSettledResult<T> | undefined): void {
  if (result?.status === 'fulfilled') done.resolve(result.value);
  else done.reject(result?.reason);
}
