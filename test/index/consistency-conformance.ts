/**
 * Writers, readers, upkeep, restarts and failures at once, compared with what was committed at each generation:
 * all searches of a snapshot show one generation, which is not older than what was acknowledged before or seen
 * by the same reader, and in the end searches find the last one, also after merges and restarts.
 */
import assert from 'node:assert/strict';
import { describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/catalog/contract.ts';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import type { CommitUpsertInput, CommitUpsertResult } from '../../src/contracts/document-commits.ts';
import { unavailable } from '../../src/errors.ts';
import { metadataTerms } from '../../src/index/terms/metadata-terms.ts';
import { SharedLock } from '../../src/index/publishing/shared-lock.ts';
import type { IndexReader } from '../../src/index/contract.ts';
import { announceRandom, type Random } from '../support/running/random.ts';
import { engineError } from '../support/stages/faults.ts';
import { dim, query, tend } from '../support/stages/index-stage.ts';
import type { IndexKind, IndexUnderTest, WrapCatalog } from './conformance.ts';
import { hangMs } from '../support/running/eventually.ts';

const tripMs = 1_200;
const colors = ['red', 'blue', 'green'] as const;
interface Version {
  /** Unique. */
  readonly number: number;
  readonly color: string;
  readonly chunks: number;
}

/** The documents of each generation. */
class History {
  readonly generations: ReadonlyMap<string, Version>[] = [new Map()];
  /** The generation in which a version came, by its number. */
  readonly born = new Map<number, number>();
  /** Commits whose answers have not come. Searches may see them already. */
  readonly running = new Set<Promise<unknown>>();
  readonly #early = new Map<number, (documents: Map<string, Version>) => void>();

  get last(): number {
    return this.generations.length - 1;
  }

  /** Answers may come in another order than commits. */
  add(generation: number, change: (documents: Map<string, Version>) => void): void {
    this.#early.set(generation, change);
    for (let next; (next = this.#early.get(this.generations.length)) !== undefined;) {
      const documents = new Map(this.generations.at(-1));
      next(documents);
      this.generations.push(documents);
    }
  }

  chunksAt(generation: number, color?: string): string {
    return [...this.generations[generation]!]
      .filter(([, version]) => color === undefined || version.color === color)
      .flatMap(([docId, { number, chunks }]) =>
        Array.from({ length: chunks }, (_chunk, place) => `${docId} ${number} ${place}`),
      )
      .toSorted()
      .join();
  }
}

/** Notes the commits of a catalog in the history, and loses as many answers as it is asked to. */
function recording(history: History, lost: { answers: number }): WrapCatalog {
  const answer = <T>(result: T): T => {
    if (lost.answers === 0) return result;
    lost.answers -= 1;
    throw unavailable('the answer was lost', undefined);
  };
  const noted = async <T>(commit: Promise<T>, note: (result: T) => void): Promise<T> => {
    const running = commit.then(note);
    history.running.add(running);
    try {
      await running;
    } finally {
      history.running.delete(running);
    }
    return answer(await commit);
  };
  const noteUpsert = (input: CommitUpsertInput, result: CommitUpsertResult): void => {
    if (result.outcome !== 'committed') return;
    history.add(result.generation, (documents) => {
      for (const { docId, metadata, chunkCount } of input.documents) {
        const { number, color } = JSON.parse(metadata) as Version;
        documents.set(docId, { number, color, chunks: chunkCount });
        history.born.set(number, result.generation);
      }
    });
  };
  return (real) => {
    const catalog: Catalog & Partial<Pick<ClusterCatalog, 'commitUpserts'>> = real;
    return {
      ...real,
      commitUpsert: (input: CommitUpsertInput) =>
        noted(catalog.commitUpsert(input), (result) => noteUpsert(input, result)),
      commitUpserts: (inputs: readonly CommitUpsertInput[]) =>
        noted(catalog.commitUpserts!(inputs), (results) => {
          for (const [place, result] of results.entries()) {
            if (result.status === 'fulfilled') noteUpsert(inputs[place]!, result.value);
          }
        }),
      commitDelete: (input: Parameters<Catalog['commitDelete']>[0]) =>
        noted(catalog.commitDelete(input), (result) => {
          if (result.outcome !== 'committed') return;
          history.add(result.generation, (documents) => void documents.delete(input.docId));
        }),
    };
  };
}

interface Setting {
  readonly kind: IndexKind;
  readonly random: Random;
  readonly history: History;
  readonly lost: { answers: number };
}

class Trip {
  readonly #random: Random;
  readonly #kind: IndexKind;
  readonly #stage: IndexUnderTest;
  readonly #history: History;
  readonly #lost: { answers: number };
  readonly #failing: boolean;
  readonly #docIds: readonly string[];
  /** Requests share it. Opening the index again takes it alone, as `OpenCache` does. */
  readonly #requests = new SharedLock();
  readonly #until = performance.now() + tripMs;
  #versions = 0;
  #acknowledged = 0;

  constructor({ kind, random, history, lost }: Setting, stage: IndexUnderTest, failing: boolean) {
    this.#kind = kind;
    this.#random = random;
    this.#stage = stage;
    this.#history = history;
    this.#lost = lost;
    this.#failing = failing;
    this.#docIds = Array.from({ length: random.pick([3, 6, 12]) }, (_doc, place) => `d${place}`);
  }

  async run(): Promise<void> {
    const random = this.#random;
    const repeated = async (step: () => Promise<void>): Promise<void> => {
      while (performance.now() < this.#until) {
        await step();
        await new Promise(setImmediate);
      }
    };
    const several = (count: number, step: () => () => Promise<void>) =>
      Array.from({ length: count }, () => repeated(step()));
    await Promise.all([
      ...several(random.integer(1, 3), () => () => this.#request(() => this.#write())),
      ...several(random.pick([1, 1, 3]), () => {
        const seen = { generation: 0 };
        return () => this.#request(() => this.#stage.index().read((reader) => this.#look(reader, seen)));
      }),
      repeated(() => this.#tend()),
    ]);
    await this.#check();
  }

  async #request(work: () => Promise<void>): Promise<void> {
    try {
      await this.#requests.shared(work);
    } catch (error) {
      if (!this.#failing || error instanceof assert.AssertionError) throw error;
    }
    if (!this.#stage.index().usable) await this.#reopen();
  }

  async #write(): Promise<void> {
    const random = this.#random;
    const choice = random.next();
    if (choice < 0.6) {
      const documents = this.#someDocuments();
      await this.#stage.upsert(documents);
      const generation = this.#history.born.get(documents[0]!.metadata.number)!;
      this.#acknowledged = Math.max(this.#acknowledged, generation);
    } else if (choice < 0.7) await this.#stage.abandon(this.#someDocuments());
    else if (choice < 0.75) await this.#deleteElsewhere();
    else await this.#stage.remove(random.pick(this.#docIds));
  }

  /** The error of an index that is just being opened. */
  async #deleteElsewhere(): Promise<void> {
    await this.#stage.commitDelete(this.#random.pick(this.#docIds)).catch(() => undefined);
    await this.#stage.index().catchUp(this.#history.last);
  }

  #someDocuments() {
    const random = this.#random;
    const docIds = new Set(
      Array.from({ length: random.pick([1, 1, 2, 6]) }, () => random.pick(this.#docIds)),
    );
    return Array.from(docIds, (docId) => {
      this.#versions += 1;
      return {
        docId,
        metadata: { number: this.#versions, color: random.pick(colors) },
        chunks: Array.from({ length: random.pick([1, 1, 2]) }, () => [
          Array.from({ length: dim }, () => random.integer(-127, 127)),
        ]),
      };
    });
  }

  /** Runs one to four searches, of a snapshot if there are such, with time between them for merges. */
  async #look(reader: IndexReader, seen: { generation: number }): Promise<void> {
    const random = this.#random;
    const first = Math.max(seen.generation, this.#acknowledged);
    const found: { readonly color: string | undefined; readonly chunks: string }[] = [];
    const searchesMax = this.#kind.pinsSnapshots ? 4 : 1;
    for (let searches = Math.min(searchesMax, random.pick([1, 2, 4])); searches > 0; searches -= 1) {
      const color = random.pick([undefined, undefined, ...colors, 'none']);
      found.push({ color, chunks: await this.#search(reader, color) });
      if (searches > 1) await new Promise((resolve) => setTimeout(resolve, random.next() * 50));
    }
    const shows = (generation: number) =>
      found.every(({ color, chunks }) => chunks === this.#history.chunksAt(generation, color));
    const shown = () =>
      Array.from(this.#history.generations.keys()).find(
        (generation) => generation >= first && shows(generation),
      );
    let generation = shown();
    if (generation === undefined) {
      await Promise.allSettled(this.#history.running);
      generation = shown();
    }
    assert(generation !== undefined, `${JSON.stringify(found)} in none of ${first} to ${this.#history.last}`);
    seen.generation = generation;
  }

  async #search(reader: IndexReader, color: string | undefined): Promise<string> {
    const { versionIds, chunkIndexes } = await reader.search({
      query,
      offsets: new Float32Array(2),
      topK: 10_000,
      candidateK: 10_000,
      ...(color === undefined ? {} : { filterTerms: metadataTerms(JSON.stringify({ color })) }),
      components: false,
      timeoutMs: hangMs,
      plan: 'exact',
    });
    const versions = await this.#stage.catalog.resolveVersions(this.#stage.indexId, [...new Set(versionIds)]);
    return Array.from(versionIds, (versionId, place) => {
      const version = versions.get(versionId);
      assert(version !== undefined, `version ${versionId} is gone`);
      const { number } = JSON.parse(version.metadata) as Version;
      return `${version.docId} ${number} ${chunkIndexes[place]}`;
    })
      .toSorted()
      .join();
  }

  async #tend(): Promise<void> {
    const random = this.#random;
    const { merge, look, durable, swap } = this.#kind.steps;
    const choice = random.next();
    if (choice < 0.02) await this.#reopen();
    else if (choice < 0.04) await this.#stage.mergeAll();
    else if (choice < 0.09 && this.#failing) this.#lost.answers += 1;
    else if (choice < 0.17 && this.#failing) {
      this.#stage.faults.set(
        random.pick([...merge, ...look, durable, 'append']),
        random.pick([engineError('io'), engineError('no_space', 1), new Error('failed')]),
      );
    } else if (choice < 0.2) {
      const held = this.#stage.hold(random.pick([swap, 'copyRecords', 'forgetDeadVersions']));
      setTimeout(() => held.release(), random.next() * 50);
    } else await this.#stage.index().maintain();
  }

  #reopen(): Promise<void> {
    return this.#requests.exclusive(async () => {
      try {
        await this.#stage.reopen();
      } catch (error) {
        if (!this.#failing) throw error;
        this.#stage.faults.clear();
        await this.#stage.reopen();
      }
    });
  }

  async #check(): Promise<void> {
    const stage = this.#stage;
    const index = () => stage.index();
    this.#lost.answers = 0;
    stage.faults.clear();
    if (!index().usable) await this.#reopen();
    const steps = [() => undefined, () => tend(index()), () => this.#reopen(), () => stage.mergeAll()];
    for (const step of steps) {
      await step();
      await index().read(async (reader) => {
        for (const color of [undefined, ...colors]) {
          assert.equal(await this.#search(reader, color), this.#history.chunksAt(this.#history.last, color));
        }
      });
    }
    const { segments, recordsLive } = index().statistics();
    assert.equal(recordsLive, this.#history.generations.at(-1)!.size);
    assert.equal(
      segments.reduce((records, segment) => records + segment.records, 0),
      recordsLive,
    );
    assert.deepEqual(this.#stage.corrupt, []);
    if (!this.#failing) assert.deepEqual(this.#stage.errors, []);
  }
}

export function describeConsistency(kind: IndexKind): void {
  describe('under all of its work at once', () => {
    const random = announceRandom('consistency');

    it.each([false, true, false, true])('shows one generation at a time (failing: %s)', async (failing) => {
      const setting = { kind, random, history: new History(), lost: { answers: 0 } };
      const settings = {
        segmentTokenVectorsMax: random.pick([8, 16, 32]),
        codesTokenVectorsMin: random.pick([8, 100_000]),
        sealedSegmentsMax: random.pick([1, 2, 4]),
        wasteAgeMsMax: 0,
      };
      await using stage = await kind.open(settings, recording(setting.history, setting.lost));
      await expect(new Trip(setting, stage, failing).run()).resolves.toBeUndefined();
    });
  });
}
