/**
 * The records of one upsert of a node. A few are held in memory and go into a delta with those of other upserts; from a
 * bound on they are written as they come, into deltas of their own.
 */
import type { CommitUpsertResult } from '../../document-commits.ts';
import { assertInvariant } from '../../errors.ts';
import type { RecordLocation } from '../../index-state.ts';
import type { NativeRecord } from '../engine/native.ts';
import { appendTo, createDelta, sealAndPut, type Delta } from './deltas.ts';
import type { UpsertGroups, UpsertOf, UpsertParts } from './upsert-groups.ts';

/** Token vectors that one upsert holds in memory: 2 MB. */
const heldTokenVectorsMax = 16_384;

/** `end` must be called, whatever happened. */
export class UpsertSession {
  readonly #parts: UpsertParts;
  readonly #groups: UpsertGroups;
  readonly #deltas: Delta[] = [];
  readonly #locations: RecordLocation[] = [];
  #held: NativeRecord[] = [];
  /** Held, or in the last delta. */
  #tokenVectors = 0;
  #generation: number | undefined;

  constructor(parts: UpsertParts, groups: UpsertGroups) {
    this.#parts = parts;
    this.#groups = groups;
  }

  /** Neither durable nor visible yet; one call at a time. */
  async append(record: NativeRecord): Promise<void> {
    this.#held.push(record);
    this.#tokenVectors += record.scales.length;
    if (this.#deltas.length > 0 || this.#tokenVectors > heldTokenVectorsMax) await this.#writeHeld();
  }

  async commit(upsert: UpsertOf): Promise<CommitUpsertResult> {
    if (this.#deltas.length === 0) return await this.#groups.commit(this.#held, upsert);
    const segments = await Promise.all(this.#deltas.map((delta) => sealAndPut(this.#parts, delta)));
    const [result] = await this.#parts.catalog.commitUpserts([
      upsert({ locations: this.#locations, segments }),
    ]);
    assertInvariant(result !== undefined, 'one upsert has one result');
    if (result.status === 'rejected') throw result.reason;
    if (result.value.outcome === 'committed') this.#generation = result.value.generation;
    return result.value;
  }

  end(): void {
    if (this.#deltas.length > 0) this.#parts.onEnd(this.#deltas, this.#generation);
  }

  async #writeHeld(): Promise<void> {
    const held = this.#held;
    this.#held = [];
    for (const record of held) {
      const delta = await this.#current(record.scales.length);
      this.#locations.push(await appendTo(this.#parts, delta, record));
    }
  }

  async #current(tokenVectors: number): Promise<Delta> {
    const last = this.#deltas.at(-1);
    if (last !== undefined && this.#tokenVectors <= this.#parts.tokenVectorsMax) return last;
    const delta = await createDelta(this.#parts);
    this.#deltas.push(delta);
    this.#tokenVectors = tokenVectors;
    return delta;
  }
}
