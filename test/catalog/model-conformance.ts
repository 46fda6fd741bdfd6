/** Random histories of one tenant, compared with the model: every answer and every state in between. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/catalog/contract.ts';
import type { CatalogUnderTest } from './conformance.ts';
import { month, newIndex, newSegment, newTenant, usageOf } from '../support/stages/catalog-fixture.ts';
import { Model } from './model.ts';
import type { ModelIndex, ModelVersion } from './model.ts';

type Step =
  | { readonly kind: 'createIndex' }
  | { readonly kind: 'deleteIndex'; readonly pick: number }
  | {
      readonly kind: 'upsert';
      readonly pick: number;
      readonly docIds: readonly string[];
      /** From now on; absent = never. */
      readonly expiresInMs: number | undefined;
      readonly tokens: number;
    }
  | { readonly kind: 'delete'; readonly pick: number; readonly docId: string }
  /** Replaces the live version, or names one that has died. */
  | { readonly kind: 'replace'; readonly pick: number; readonly docId: string; readonly isLate: boolean }
  | { readonly kind: 'expire'; readonly pick: number; readonly afterMs: number }
  | { readonly kind: 'setDocumentsMax'; readonly documents: number }
  | { readonly kind: 'forget'; readonly pick: number; readonly behind: number }
  | { readonly kind: 'newSegment'; readonly pick: number }
  | { readonly kind: 'compact'; readonly pick: number; readonly diesMeanwhile: string }
  | { readonly kind: 'search'; readonly tokens: number }
  | { readonly kind: 'reopen' };

const pick = fc.nat({ max: 9 });
const docId = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const tokens = fc.nat({ max: 1000 });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('createIndex' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteIndex' as const), pick }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('upsert' as const),
      pick,
      docIds: fc.uniqueArray(docId, { minLength: 1, maxLength: 4 }),
      expiresInMs: fc.option(fc.nat({ max: 6 }), { nil: undefined }),
      tokens,
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('delete' as const), pick, docId }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('replace' as const), pick, docId, isLate: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('expire' as const), pick, afterMs: fc.nat({ max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('setDocumentsMax' as const), documents: fc.nat({ max: 14 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('forget' as const), pick, behind: fc.nat({ max: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('newSegment' as const), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('compact' as const), pick, diesMeanwhile: docId }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('search' as const), tokens }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
);

export function describeModel(current: () => CatalogUnderTest): void {
  describe('random histories', () => {
    it('leave the state of the model, after every step and after a restart', async () => {
      const checked = fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
          const { id: tenantId } = await newTenant(current().catalog);
          const history = new History(current, tenantId);
          for (const next of steps) {
            await history.take(next);
            await history.check();
          }
          await current().reopen();
          await history.check();
        }),
        { numRuns: 12 },
      );
      await expect(checked).resolves.toBeUndefined();
    });
  });
}

class History {
  readonly #current: () => CatalogUnderTest;
  readonly #tenantId: string;
  readonly #model = new Model();

  constructor(current: () => CatalogUnderTest, tenantId: string) {
    this.#current = current;
    this.#tenantId = tenantId;
  }

  get #catalog(): Catalog {
    return this.#current().catalog;
  }

  async take(next: Step): Promise<void> {
    switch (next.kind) {
      case 'createIndex':
        return this.#createIndex();
      case 'setDocumentsMax':
        this.#model.documentsMax = next.documents;
        return;
      case 'search':
        return this.#search(next.tokens);
      case 'reopen':
        return this.#current().reopen();
    }
    const indexes = [...this.#model.indexes.values()];
    const index = indexes[next.pick % Math.max(1, indexes.length)];
    if (index === undefined) return;
    switch (next.kind) {
      case 'deleteIndex':
        this.#model.indexes.delete(index.id);
        assert.equal(await this.#catalog.deleteIndex(this.#tenantId, index.id), true);
        return;
      case 'upsert':
        return this.#upsert(index, next.docIds, BigInt(next.tokens), next.expiresInMs);
      case 'expire':
        this.#model.nowMs += next.afterMs;
        await this.check();
        return this.#expire(index);
      case 'delete':
        return this.#delete(index, next.docId);
      case 'replace':
        return this.#replace(index, next.docId, next.isLate);
      case 'forget':
        return this.#forget(index, Math.max(0, index.generation - next.behind));
      case 'newSegment':
        return this.#addSegment(index);
      case 'compact':
        return this.#compact(index, next.diesMeanwhile);
    }
  }

  async check(): Promise<void> {
    const model = this.#model;
    const listed = await this.#catalog.listIndexes(this.#tenantId);
    assert.deepEqual(
      listed.map(({ id }) => id),
      [...model.indexes.keys()],
    );
    const totals = await this.#catalog.usageTotals(this.#tenantId, month);
    assert.deepEqual(totals, {
      documents: model.documents,
      inputTokens: model.inputTokens,
      requests: model.requests,
      searches: model.searches,
      scores: 0,
      documentUpserts: 0,
    });
    for (const index of model.indexes.values()) await this.#checkIndex(index);
  }

  async #checkIndex(index: ModelIndex): Promise<void> {
    const state = await this.#catalog.loadIndexState(index.id);
    const placed = this.#model.placed(index);
    assert.equal(state.generation, index.generation);
    assert.deepEqual(
      [...state.versions.versionIds],
      placed.map(({ versionId }) => versionId),
    );
    assert.deepEqual(
      [...state.versions.segmentIds],
      placed.map(({ segmentId }) => segmentId),
    );
    assert.deepEqual(
      [...state.versions.records],
      placed.map((version) => version.record),
    );
    assert.deepEqual(
      [...state.versions.born],
      placed.map(({ born }) => born),
    );
    assert.deepEqual(
      [...state.versions.died],
      placed.map(({ died }) => died),
    );
    assert.deepEqual(
      state.segments,
      index.segments.map(({ id, sealed }) => ({
        id,
        indexId: index.id,
        blob: `${index.id}/${id}.seg`,
        state: sealed ? 'sealed' : 'active',
        recordsReferenced: Math.max(
          0,
          ...placed.filter(({ segmentId }) => segmentId === id).map((version) => version.record + 1),
        ),
      })),
    );
    const resolved = await this.#catalog.resolveVersions(
      index.id,
      index.versions.map(({ versionId }) => versionId),
    );
    assert.deepEqual(
      [...resolved],
      index.versions.map(({ versionId, docId: id, metadata, ...version }) => [
        versionId,
        { docId: id, metadata, chunkCount: 1, ...expiryOf(version) },
      ]),
    );
    const docIds = ['a', 'b', 'c', 'd', 'e', 'f'];
    const live = this.#model.live(index).toSorted((one, other) => (one.docId < other.docId ? -1 : 1));
    assert.equal(await this.#catalog.countStored(index.id, docIds), live.length);
    const { nowMs } = this.#model;
    const shown = live.filter((version) => !this.#model.isExpired(version));
    const count = { documents: shown.length, chunks: shown.length };
    assert.deepEqual(await this.#catalog.countDocuments(index.id, nowMs), count);
    const page = { limit: 10, nowMs, bytesMax: 1_000_000 };
    assert.deepEqual(await this.#catalog.listDocuments(index.id, page), {
      documents: shown.map(({ docId: id, metadata, ...version }) => ({
        docId: id,
        metadata,
        chunkCount: 1,
        ...expiryOf(version),
      })),
      hasMore: false,
    });
    for (const { docId: id, versionId, metadata, segmentId, record, ...version } of live) {
      const place = { segmentId, record, chunkCount: 1, tokenVectors: 1 };
      const found = { docId: id, versionId, metadata, ...place, ...expiryOf(version) };
      assert.deepEqual(await this.#catalog.findDocument(index.id, id), found);
    }
  }

  async #search(inputTokens: number): Promise<void> {
    const counters = { requests: 1, searches: 1, inputTokens: BigInt(inputTokens) };
    await this.#catalog.recordUsage(usageOf(this.#tenantId, counters));
    this.#model.requests++;
    this.#model.searches++;
    this.#model.inputTokens += counters.inputTokens;
  }

  async #createIndex(): Promise<void> {
    const { id } = await newIndex(this.#catalog, this.#tenantId);
    const index: ModelIndex = { id, generation: 0, versions: [], segments: [] };
    this.#model.indexes.set(id, index);
    await this.#addSegment(index);
  }

  async #addSegment(index: ModelIndex): Promise<void> {
    const last = index.segments.at(-1);
    if (last !== undefined) {
      await this.#catalog.sealSegment(last.id, last.nextRecord);
      last.sealed = true;
    }
    const id = await newSegment(this.#catalog, index.id);
    index.segments.push({ id, sealed: false, nextRecord: 0 });
  }

  async #replace(index: ModelIndex, id: string, isLate: boolean): Promise<void> {
    const versions = index.versions.filter((version) => version.docId === id);
    const named = isLate ? versions.at(0) : versions.findLast(({ died }) => died === 0);
    if (named !== undefined) await this.#upsert(index, [id], 0n, undefined, named);
  }

  async #upsert(
    index: ModelIndex,
    docIds: readonly string[],
    inputTokens: bigint,
    expiresInMs: number | undefined,
    named?: ModelVersion,
  ): Promise<void> {
    const segment = index.segments.at(-1);
    if (segment === undefined) return;
    const ids = await this.#catalog.allocateIds(docIds.length);
    const documents: ModelVersion[] = docIds.map((id, place) => ({
      docId: id,
      versionId: ids[place] ?? 0,
      metadata: JSON.stringify({ id, generation: index.generation }),
      segmentId: segment.id,
      record: segment.nextRecord++,
      born: 0,
      died: 0,
      ...(expiresInMs === undefined ? {} : { expiresAtMs: this.#model.nowMs + expiresInMs }),
    }));
    const isLate = named !== undefined && named.died !== 0;
    const expected = isLate ? 'document_changed' : this.#model.upsert(index, documents);
    const result = await this.#catalog.commitUpsert({
      tenantId: this.#tenantId,
      indexId: index.id,
      documents: documents.map((document) => ({
        ...document,
        chunkCount: 1,
        tokenVectors: 1,
        ...(named === undefined ? {} : { replaces: named.versionId }),
      })),
      documentsMax: this.#model.documentsMax,
      usage: usageOf(this.#tenantId, { requests: 1, inputTokens }),
    });
    assert.equal(result.outcome, expected);
    if (result.outcome !== 'committed') return;
    this.#model.requests++;
    this.#model.inputTokens += inputTokens;
    assert.equal(result.generation, index.generation);
    const died = index.versions.filter((version) => version.died === index.generation);
    assert.deepEqual(
      result.died.map(({ versionId }) => versionId).toSorted((one, two) => one - two),
      died.map(({ versionId }) => versionId),
    );
  }

  async #delete(index: ModelIndex, id: string): Promise<void> {
    const expected = this.#model.delete(index, id);
    const result = await this.#catalog.commitDelete({
      tenantId: this.#tenantId,
      indexId: index.id,
      docId: id,
      usage: usageOf(this.#tenantId, { requests: 1 }),
    });
    assert.equal(result.outcome, expected);
    if (result.outcome === 'committed') this.#model.requests++;
  }

  async #expire(index: ModelIndex): Promise<void> {
    const { nowMs } = this.#model;
    const found = await this.#catalog.expiredVersions(index.id, nowMs, 10);
    const expected = this.#model.expire(index);
    assert.deepEqual(
      found.toSorted((one, two) => one - two),
      expected,
    );
    const result = await this.#catalog.commitDeleteVersions({
      tenantId: this.#tenantId,
      indexId: index.id,
      versionIds: found,
      usage: usageOf(this.#tenantId),
    });
    assert.equal(result.outcome, expected.length === 0 ? 'absent' : 'committed');
    if (result.outcome === 'committed') assert.equal(result.generation, index.generation);
    const indexes = await this.#catalog.expiredIndexes(nowMs);
    assert.ok(!indexes.some(({ id }) => id === index.id));
  }

  async #forget(index: ModelIndex, generation: number): Promise<void> {
    const expected = this.#model.forget(index, generation);
    assert.equal(await this.#catalog.forgetDeadVersions(index.id, generation), expected);
  }

  /** Moves live versions into a new segment while one more document dies. Removes all older segments. */
  async #compact(index: ModelIndex, diesMeanwhile: string): Promise<void> {
    await this.#addSegment(index);
    const target = index.segments.at(-1);
    if (target === undefined) return;
    const removed = index.segments.filter(({ sealed }) => sealed).map(({ id }) => id);
    const moved = this.#model.live(index);
    await this.#delete(index, diesMeanwhile);
    await this.#catalog.swapSegments({
      indexId: index.id,
      removedSegmentIds: removed,
      moves: moved.map(({ versionId }, place) => ({
        versionId,
        to: { segmentId: target.id, record: place },
      })),
    });
    for (const version of index.versions) version.segmentId = 0;
    for (const [place, version] of moved.entries()) {
      version.segmentId = target.id;
      version.record = place;
    }
    target.nextRecord = moved.length;
    index.segments = [target];
  }
}

function expiryOf({ expiresAtMs }: Pick<ModelVersion, 'expiresAtMs'>) {
  return expiresAtMs === undefined ? {} : { expiresAtMs };
}
