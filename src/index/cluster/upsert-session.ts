/**
 * The records of one upsert of a node. A small upsert is held in memory and shares a delta with others. A large one is written
 * as it comes, into deltas of its own.
 */
import type { CommitUpsertResult } from '../../contracts/document-commits.ts';
import type { NamedSegment, RecordLocation } from '../../contracts/index-state.ts';
import type { NativeRecord } from '../engine/native.ts';
import { commitUpsert } from '../catalog.ts';
import { appendTo, createDelta, sealAndPut, type Delta } from './deltas.ts';
import type { UpsertGroups, UpsertOf, UpsertDeps } from './upsert-groups.ts';

/** An upsert with more bytes of records is large. */
const heldBytesMax = 2 * 1024 * 1024;

/** The caller must call `end`, whatever happened. */
export class UpsertSession {
  readonly #deps: UpsertDeps;
  readonly #groups: UpsertGroups;
  readonly #deltas: Delta[] = [];
  readonly #locations: RecordLocation[] = [];
  readonly #held: NativeRecord[] = [];
  #heldBytes = 0;
  /** Token vectors in the last delta. */
  #tokenVectors = 0;
  #isCommitted = false;

  constructor(deps: UpsertDeps, groups: UpsertGroups) {
    this.#deps = deps;
    this.#groups = groups;
  }

  /** Takes a record, which is neither durable nor visible yet. One call at a time. */
  async append(record: NativeRecord): Promise<void> {
    this.#held.push(record);
    this.#heldBytes += record.vectors.byteLength + record.scales.byteLength + record.terms.byteLength;
    if (this.#deltas.length > 0 || this.#heldBytes > heldBytesMax) await this.#writeHeld();
  }

  async commit(upsert: UpsertOf): Promise<CommitUpsertResult> {
    if (this.#deltas.length === 0) return await this.#groups.commit(this.#held, upsert);
    const input = upsert({ locations: this.#locations, segments: await this.#putAll() });
    const result = await commitUpsert(this.#deps.catalog, input);
    this.#isCommitted = result.outcome === 'committed';
    return result;
  }

  end(): void {
    if (this.#deltas.length > 0) this.#deps.onEnd(this.#deltas, this.#isCommitted);
  }

  /** Rejects only when no put is under way any more. */
  async #putAll(): Promise<readonly NamedSegment[]> {
    const puts = this.#deltas.map((delta) => sealAndPut(this.#deps, delta));
    await Promise.allSettled(puts);
    return await Promise.all(puts);
  }

  async #writeHeld(): Promise<void> {
    for (const record of this.#held.splice(0)) {
      const delta = await this.#current();
      this.#tokenVectors += record.scales.length;
      this.#locations.push(await appendTo(this.#deps, delta, record));
    }
  }

  async #current(): Promise<Delta> {
    const last = this.#deltas.at(-1);
    const { segmentTokenVectorsMax } = this.#deps.settings;
    if (last !== undefined && this.#tokenVectors < segmentTokenVectorsMax) return last;
    const delta = await createDelta(this.#deps);
    this.#deltas.push(delta);
    this.#tokenVectors = 0;
    return delta;
  }
}
