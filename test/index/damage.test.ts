/**
 * Random damage of every kind of file of an index, before it is opened and below its mappings: what a search answers is
 * what it answered before, or an error. Verification finds what no search met, and derived files are built again.
 * `TEST_SEED` repeats a run.
 */
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { columnsPrefix, segmentOfColumn } from '../../src/index/segments/derived-data.ts';
import { recallFile, writeRecall } from '../../src/index/recall/recall-file.ts';
import { rounds } from '../rounds.ts';
import { cutPages, damage } from '../support/machine/file-damage.ts';
import { announceRandom, createRandom, type Random } from '../support/running/random.ts';
import { dim, openHost, openStage, query, type Host, type Stage } from '../support/stages/index-stage.ts';
import { eventually, hangMs } from '../support/running/eventually.ts';

const count = rounds({ short: 120, nightly: 20_000 });
const settings = {
  segmentTokenVectorsMax: 150,
  codesTokenVectorsMin: 32,
  sealedSegmentsMax: 100,
  verifyBytesPerSecond: Number.MAX_SAFE_INTEGER,
  verifyAgeMsMax: 0,
  // The dead stay.
  wasteAgeMsMax: Infinity,
};

const allKinds = ['active', 'codebook', 'codes', 'columns', 'postings', 'recall', 'sealed'];

let host: Host;
let stage: Stage;
let directory: string;
let intact: ReadonlyMap<string, Buffer>;
let answers: Answers;

beforeAll(async () => {
  host = await openHost();
  stage = await openStage(host, settings);
  const random = createRandom(1);
  for (let place = 0; place < 60; place += 1) {
    const row = (): readonly number[] => Array.from({ length: dim }, () => random.integer(-127, 127));
    const chunk = (): readonly (readonly number[])[] => Array.from({ length: 4 }, row);
    await stage.upsert([
      { docId: `${place}`, metadata: { third: place % 3, place }, chunks: [chunk(), chunk()] },
    ]);
  }
  for (let place = 0; place < 60; place += 7) await stage.remove(`${place}`);
  await stage.index().settled();
  const comparisons = [{ breadth: 2, at10: 1, at100: 0.98 }];
  const measured = { breadth: 2, comparisons, chunks: 120, codebooks: [] };
  await stage.reopen(() => writeRecall(stage.blobs, stage.indexId, measured));
  await stage.index().settled();
  const [blob] = await stage.blobs.list(`${stage.indexId}/`);
  directory = path.dirname(await stage.blobs.open(blob!.name));
  answers = await answersNow();
  await eventually(hasAllColumns);
  await stage.index().settled();
  intact = await readAll();
  for (const answer of Object.values(answers)) if (answer instanceof Error) throw answer;
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
});

describe('a damaged file of an index', () => {
  it('is there in every kind', () => {
    const kinds = [...intact.keys()].map((name) => kindOf(name)).toSorted();
    expect([...new Set(kinds)]).toEqual(allKinds);
  });

  it(
    'gives an error or the same answer, and verification finds what no search met',
    async () => {
      const random = announceRandom('damaged files');
      const tally = new Map<string, Record<Outcome, number>>();
      for (let round = 0; round < count; round += 1) {
        const kind = random.pick(allKinds);
        const names = [...intact.keys()].filter((name) => kindOf(name) === kind);
        const outcome = await damagedRound(random, random.pick(names), kind);
        const counts = tally.get(kind) ?? { refused: 0, verified: 0, rebuilt: 0, harmless: 0 };
        counts[outcome] += 1;
        tally.set(kind, counts);
      }
      console.log('damaged files:', Object.fromEntries(tally));
      // In a sealed segment every byte is damaged, in an active one those of its records.
      expect(tally.get('sealed')!.harmless).toBe(0);
      expect(tally.get('active')!.refused).toBeGreaterThan(0);
      for (const kind of ['codes', 'codebook', 'columns', 'postings', 'recall']) {
        expect(tally.get(kind)).toMatchObject({ refused: 0, verified: 0, harmless: 0 });
      }
    },
    60_000 + count * 500,
  );
});

/** How damage ends: a search or verification reports it, the file is built again, or nothing depends on it. */
type Outcome = 'refused' | 'verified' | 'rebuilt' | 'harmless';

async function damagedRound(random: Random, name: string, kind: string): Promise<Outcome> {
  const file = path.join(directory, name);
  // An open index has read its recall and maps no file of it.
  const isOpen = kind !== 'recall' && random.next() < 0.3;
  const { what, bytes } = (isOpen ? cutPages : damage)(random, intact.get(name)!);
  const round = `${name} (${kind}), ${what}${isOpen ? ' below its mapping' : ''}`;
  let refused = 0;
  let isOpened = false;
  try {
    await stage.reopen(async () => {
      await restore();
      // Second reads of the round before may still report something.
      stage.corrupt.length = stage.errors.length = 0;
      if (!isOpen) await writeFile(file, bytes);
    });
    isOpened = true;
    if (isOpen) {
      await stage.index().settled();
      await truncate(file, bytes.length);
    }
    refused = compare(await answersNow(), round);
    await stage.index().settled();
    await stage.index().verified();
    await stage.index().settled();
  } catch (error) {
    // The index cannot be opened.
    if (!isStated(error)) throw new Error(round, { cause: error });
    refused += 1;
  }
  await expect.poll(() => stage.index().busy).toBe(false);
  // Every search that met damage causes a second read.
  if (isOpened && refused > 0) await expect.poll(() => stage.corrupt.length).toBeGreaterThan(0);
  const corrupt = stage.corrupt.splice(0);
  const errors = stage.errors.splice(0).map(String);
  // A report names the damage.
  for (const error of errors) expect(error, round).toMatch(/\.seg|recall\.json/);
  if (refused > 0) return 'refused';
  if (corrupt.length > 0) return 'verified';
  if (kind === 'sealed' || kind === 'active') return errors.length > 0 ? 'verified' : 'harmless';
  expect(compare(await answersNow(), round), round).toBe(0);
  expect(await damagedDerived(), round).toEqual([]);
  // It is said once, and the next opening finds nothing.
  if (kind === 'recall') {
    expect(errors, round).toEqual([expect.stringContaining(name)]);
    await stage.reopen();
    expect(stage.errors, round).toEqual([]);
  }
  return 'rebuilt';
}

interface Answers {
  readonly all: readonly unknown[] | Error;
  readonly filtered: readonly unknown[] | Error;
  /** By a condition, which reads columns. */
  readonly ranged: readonly unknown[] | Error;
  readonly byCodes: readonly unknown[] | Error;
}

async function answersNow(): Promise<Answers> {
  const byCodes = stage.index().read(async (reader) => {
    const { versionIds, chunkIndexes, scores } = await reader.search({
      query,
      offsets: new Float32Array(2),
      topK: 10,
      candidateK: 30,
      components: false,
      timeoutMs: hangMs,
      plan: 'codes',
    });
    const versions = await stage.catalog.resolveVersions(stage.indexId, [...new Set(versionIds)]);
    return [...versionIds].map((versionId, place) => {
      const { docId, metadata } = versions.get(versionId)!;
      return { docId, metadata, chunkIndex: chunkIndexes[place]!, score: scores[place]! };
    });
  });
  const works: readonly Promise<readonly unknown[]>[] = [
    stage.search(),
    stage.search({ third: 1 }),
    stage.search({}, 10_000, '{"place":{"gte":10,"lt":50}}'),
    byCodes,
  ];
  const [all, filtered, ranged, codes] = await Promise.all(
    works.map((work) => work.catch((error: unknown) => error as Error)),
  );
  return { all: all!, filtered: filtered!, ranged: ranged!, byCodes: codes! };
}

/** Returns how many answers were refused. The others must be as before, but codes may choose other chunks (never other scores). */
function compare(found: Answers, round: string): number {
  const refused = Object.entries(found).filter(([question, answer]) => {
    if (answer instanceof Error) {
      if (!isStated(answer)) throw new Error(`${round}: ${question}`, { cause: answer });
      return true;
    }
    if (question !== 'byCodes')
      expect(answer, `${round}: ${question}`).toEqual(answers[question as keyof Answers]);
    return false;
  });
  if (!(found.byCodes instanceof Error)) {
    expect(found.byCodes, round).toHaveLength(10);
    expect(answers.all, round).toEqual(expect.arrayContaining([...found.byCodes]));
  }
  return refused.length;
}

/** An error that a caller of the service gets. */
function isStated(error: unknown): boolean {
  return (
    error instanceof ServiceError && (error.code === 'service_unavailable' || error.code === 'internal_error')
  );
}

function kindOf(name: string): string {
  if (recallFile(stage.indexId).endsWith(`/${name}`)) return 'recall';
  if (name.startsWith('codebook-')) return 'codebook';
  if (name.endsWith('.codes')) return 'codes';
  if (name.endsWith('.postings')) return 'postings';
  if (segmentOfColumn(name) !== undefined) return 'columns';
  return intact.has(`${name}.postings`) ? 'sealed' : 'active';
}

async function readAll(): Promise<Map<string, Buffer>> {
  const names = (await readdir(directory)).toSorted();
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(path.join(directory, name))] as const)),
  );
}

/** Whether every segment with codes has its column, and none is being written. */
async function hasAllColumns(): Promise<boolean> {
  const names = await readdir(directory);
  const codes = names.filter((name) => name.endsWith('.codes'));
  const columns = names.filter((name) => name.includes(columnsPrefix));
  return columns.length === codes.length && columns.every((name) => segmentOfColumn(name) !== undefined);
}

/** Derived files that verification finds damaged, and sealed segments without them. */
async function damagedDerived(): Promise<readonly string[]> {
  const { segments } = stage.index().statistics();
  const lacking = segments.filter(
    ({ state, centroids, postingBytes }) => state === 'sealed' && (centroids === 0 || postingBytes === 0),
  );
  const files = (await readdir(directory)).map((name) => path.join(directory, name));
  const found = files.map(async (file) => {
    if (file.endsWith('.codes')) return (await host.engine.inspectCodes(file, true)).damage;
    if (file.endsWith('.postings')) return (await host.engine.inspectPostings(file, true)).damage;
    if (segmentOfColumn(file) !== undefined) return (await host.engine.inspectColumn(file, true)).damage;
    return '';
  });
  return [...lacking.map(({ segmentId }) => `${segmentId}`), ...(await Promise.all(found))].filter(
    (what) => what !== '',
  );
}

async function restore(): Promise<void> {
  for (const name of await readdir(directory)) if (!intact.has(name)) await rm(path.join(directory, name));
  for (const [name, bytes] of intact) await writeFile(path.join(directory, name), bytes);
}
