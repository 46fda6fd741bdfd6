/**
 * Groups upserts that end at about the same time. A group shares a delta, its objects and a transaction, in which each
 * upsert is decided alone. An upsert that finds no other on its way goes at once. Those that come meanwhile go together when
 * it is done.
 *
 * All versions of a segment are born in the transaction that names it. So a node that lacks the segment learns of all of them.
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../../contracts/document-commits.ts';
import { ServiceError } from '../../errors.ts';
import type { RecordLocation } from '../../contracts/index-state.ts';
import type { PlacedRecords } from '../contract.ts';
import type { NativeRecord } from '../engine/native.ts';
import type { IndexSettings } from '../index-settings.ts';
import type { IndexCatalog } from '../catalog.ts';
import { appendTo, nameDelta, openDelta, sealAndPut, type Delta, type DeltaDeps } from './deltas.ts';

export interface UpsertDeps extends DeltaDeps {
  readonly catalog: DeltaDeps['catalog'] & Pick<IndexCatalog, 'commitUpserts'>;
  readonly settings: Pick<IndexSettings, 'segmentTokenVectorsMax'>;
  /** Called when an upsert has ended, with its deltas. The catalog names them, or never will. */
  readonly onEnd: (deltas: readonly Delta[], isCommitted: boolean) => void;
}

/** Says what an upsert commits, once it is known where its records lie. */
export type UpsertOf = (placed: PlacedRecords) => CommitUpsertInput;

interface Waiting {
  readonly records: readonly NativeRecord[];
  readonly upsert: UpsertOf;
  readonly done: PromiseWithResolvers<CommitUpsertResult>;
}

/** Upserts wait no longer than this for a group before them. A put and a commit take far less, unless they hang. */
const waitMsMax = 200;
/** Upserts of a group. Each is two subtransactions, and more than 64 in one transaction slow down all others in PostgreSQL. */
const upsertsMax = 32;
/** A name is used within this time, far before the catalog takes it for garbage. */
const nameMsMax = 3_600_000;

export class UpsertGroups {
  readonly #deps: UpsertDeps;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running = 0;
  /** The name for the next group. It is made ahead, because it takes a transaction. */
  #name: { readonly delta: Promise<Delta>; readonly madeAtMs: number } | undefined;

  constructor(deps: UpsertDeps) {
    this.#deps = deps;
  }

  commit(records: readonly NativeRecord[], upsert: UpsertOf): Promise<CommitUpsertResult> {
    const done = Promise.withResolvers<CommitUpsertResult>();
    this.#waiting.push({ records, upsert, done });
    if (this.#running === 0) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), waitMsMax);
    return done.promise;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, upsertsMax);
      this.#running += 1;
      void this.#run(group).finally(() => {
        this.#running -= 1;
        if (this.#running === 0) this.#start();
      });
    }
  }

  /** Never rejects. */
  async #run(group: readonly Waiting[]): Promise<void> {
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
      // One wrong upsert may have failed the group: each is tried alone, so that the others are not refused.
      const isAway = error instanceof ServiceError && error.code === 'service_unavailable';
      if (group.length > 1 && !isAway) {
        for (const alone of group) await this.#run([alone]);
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

  /** Returns the name for this group and has the next one made. */
  #takeName(): Promise<Delta> {
    const nowMs = performance.now();
    const made = this.#name;
    const isFresh = made !== undefined && nowMs - made.madeAtMs < nameMsMax;
    const delta = isFresh ? made.delta : nameDelta(this.#deps);
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
