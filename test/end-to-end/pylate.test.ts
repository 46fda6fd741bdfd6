/**
 * Checkpoints that PyLate made, exported by `models/convert.sh` and served here, against what PyLate itself computes with them:
 * token vectors before they are quantised, rankings by the vectors that are stored, and rankings by its own vectors. Every
 * night, because PyTorch is some gigabytes to install; `TEST_PYLATE=DIRECTORY` takes what an earlier run left in that
 * directory.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { RowMaker } from '../../src/encoder/inference/rows.ts';
import type { SessionPool } from '../../src/encoder/inference/session-pool.ts';
import { loadModel, type ServedModel } from '../../src/encoder/model/served-model.ts';
import { rounds } from '../rounds.ts';
import { startEncoders, type Encoders, callOptions } from '../support/encoder/encoders.ts';
import { sessionsOfTest } from '../support/encoder/sessions.ts';
import { documentOf, queryOf, unquantisedRows } from '../support/encoder/unquantised.ts';
import { createTenant, runCommand } from '../support/commands/command-line.ts';
import { makeScratch, repositoryRoot, type Scratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { find, makeIndex, put } from '../support/running/requests.ts';

interface Expected {
  readonly dim: number;
  readonly queries: readonly string[];
  readonly documents: readonly string[];
  /** Vectors of each text: first the queries, then the documents. */
  readonly rows: readonly number[];
  /** Every query against every document. */
  readonly scores: readonly (readonly number[])[];
}

const given = process.env['TEST_PYLATE'];
const left = given ?? path.join(repositoryRoot, 'build/pylate');
const isWanted = given !== undefined || rounds({ short: 0, nightly: 1 }) === 1;

function prepare(): void {
  if (given !== undefined && existsSync(path.join(left, 'trained/export/model.onnx'))) return;
  mkdirSync(left, { recursive: true });
  const { status, stderr } = spawnSync(path.join(repositoryRoot, 'models/pylate/prove.sh'), [left], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`PyLate failed:\n${stderr}`);
}

function expectedOf(family: string): {
  readonly expected: Expected;
  readonly vectors: readonly Float32Array[];
} {
  const folder = path.join(left, family);
  const expected = JSON.parse(readFileSync(path.join(folder, 'expected.json'), 'utf8')) as Expected;
  const bytes = readFileSync(path.join(folder, 'expected.f32'));
  const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  let from = 0;
  const vectors = expected.rows.map((rows) => all.subarray(from, (from += rows * expected.dim)));
  return { expected, vectors };
}

describe.skipIf(!isWanted)('a model of PyLate', () => {
  let scratch: Scratch;
  let server: ServerProcess;

  beforeAll(async () => {
    prepare();
    scratch = await makeScratch();
    server = await startServer({ scratch });
  }, 1_800_000);

  afterAll(async () => {
    await server?.stop();
    await scratch?.remove();
  });

  test.each([
    { name: 'bert', bestTenLeast: 0.9 },
    { name: 'modernbert', bestTenLeast: 0.95 },
    { name: 'trained', bestTenLeast: 0.97 },
  ])(
    '$name: its vectors, ranks by the stored vectors, and ranks by its own wherever 8 bits can tell',
    async ({ name, bestTenLeast }) => {
      const { expected, vectors } = expectedOf(name);
      const added = await runCommand(['models', 'add', path.join(left, name, 'export'), '--name', name], {
        MAXSIMD_DATA_DIR: scratch.data,
      });
      expect(added).toMatchObject({ exitCode: 0, stderr: '' });
      const installed = path.join(scratch.data, 'models', name, '1');
      const model = await loadModel(installed);
      const before = await unquantised(await sessionsOfTest(model), model, expected);
      const vectorsDiffer = furthest(before, vectors);
      expect(vectorsDiffer).toBeLessThan(1e-3);

      const encoders = await startEncoders({ modelDirectories: [installed] });
      const stored = await storedVectors(encoders, expected).finally(() => encoders.close());
      const byStored = scoresOfPyLate(name, stored);
      const { client } = await createTenant(server);
      const index = await makeIndex(client, { model: name });
      for (let from = 0; from < expected.documents.length; from += 50) {
        const documents = expected.documents
          .slice(from, from + 50)
          .map((text, i) => ({ doc_id: String(from + i), text }));
        expect((await put(client, index.id, documents)).upserted_chunks).toBe(documents.length);
      }
      const seen = {
        vectors: { differ: vectorsDiffer },
        byStoredVectors: { scoresDiffer: 0, placesDiffer: 0 },
        byItsOwn: { scoresDiffer: 0, placesDiffer: 0, firstKept: 0, bestTenKept: 0 },
      };
      for (const [q, query] of expected.queries.entries()) {
        const { results } = await find(client, index.id, { query, top_k: 100, candidate_k: 500 });
        expect(results).toHaveLength(100);
        const found = results.map(({ doc_id }) => Number(doc_id));
        // PyLate ranks the vectors that are stored here as they are ranked here.
        const here = byStored[q]!;
        const orderHere = ranked(here);
        for (const [i, { score }] of results.entries()) {
          const differs = Math.abs(score - here[found[i]!]!);
          seen.byStoredVectors.scoresDiffer = Math.max(seen.byStoredVectors.scoresDiffer, differs);
          if (found[i] === orderHere[i]) continue;
          seen.byStoredVectors.placesDiffer += 1;
          // A tie but for the rounding of sums.
          expect(Math.abs(here[found[i]!]! - here[orderHere[i]!]!)).toBeLessThan(1e-4);
        }
        // Its own vectors, which have 32 bits, rank otherwise only where scores are as close as 8 bits may bring them.
        const theirs = expected.scores[q]!;
        const lost = theirs.map((_, d) =>
          mostLost(stored, vectors, [q, expected.queries.length + d], expected.dim),
        );
        const order = ranked(theirs);
        for (const [i, d] of found.entries()) {
          const differs = Math.abs(here[d]! - theirs[d]!);
          seen.byItsOwn.scoresDiffer = Math.max(seen.byItsOwn.scoresDiffer, differs / expected.rows[q]!);
          expect(differs).toBeLessThan(lost[d]!);
          for (const later of found.slice(i + 1))
            expect(theirs[later]! - theirs[d]!).toBeLessThan(lost[d]! + lost[later]!);
          if (order[i] !== d) seen.byItsOwn.placesDiffer += 1;
        }
        if (order[0] === found[0]) seen.byItsOwn.firstKept += 1;
        seen.byItsOwn.bestTenKept += order.slice(0, 10).filter((d) => found.slice(0, 10).includes(d)).length;
      }
      expect(seen.byStoredVectors.scoresDiffer).toBeLessThan(1e-4);
      expect(seen.byStoredVectors.placesDiffer).toBeLessThanOrEqual(20);
      expect(seen.byItsOwn.bestTenKept).toBeGreaterThanOrEqual(bestTenLeast * expected.queries.length * 10);
      console.log(name, seen);
    },
  );
});

/** Documents from the best score to the least. */
function ranked(scores: readonly number[]): readonly number[] {
  return scores.map((_, d) => d).toSorted((x, y) => scores[y]! - scores[x]!);
}

/** Vectors of each text as the graph gives them: first the queries, then the documents. */
async function unquantised(
  sessions: SessionPool,
  model: ServedModel,
  expected: Expected,
): Promise<readonly Float32Array[]> {
  const sequences = [
    ...expected.queries.map((text) => queryOf(model, text)),
    ...expected.documents.map((text) => documentOf(model, text)),
  ];
  const all: Float32Array[] = [];
  for (const sequence of sequences) all.push(await unquantisedRows(sessions, expected.dim, sequence));
  return all;
}

/** Vectors of each text in the 8 bits that they are compared in. */
async function storedVectors({ pool }: Encoders, expected: Expected): Promise<readonly Float32Array[]> {
  const { dim } = expected;
  const options = callOptions(pool, { deadlineMs: Date.now() + 300_000 });
  const all: Float32Array[] = [];
  const maker = new RowMaker({ dim, rowBits: 8, poolFactor: 1, centring: undefined, moment: undefined });
  for (const text of expected.queries) {
    const { vectors, rows } = await pool.encodeQuery(text, options);
    const { stored, scales } = maker.make(vectors, Uint32Array.of(rows));
    all.push(Float32Array.from(stored, (value, i) => value * scales[Math.floor(i / dim)]!));
  }
  const chunking = { maxTokens: pool.models()[0]!.windowTokensMax, overlapTokens: 0, minimumChunkTokens: 1 };
  for await (const { documentIndex, vectors, scales } of pool.encodeDocuments(expected.documents, {
    ...options,
    chunking,
    onTokenCounts: () => undefined,
  })) {
    const halves = new Float16Array(scales.buffer, scales.byteOffset, scales.length);
    all[expected.queries.length + documentIndex] = Float32Array.from(
      vectors,
      (value, i) => value * halves[Math.floor(i / dim)]!,
    );
  }
  return all;
}

/** The scores that PyLate's own code computes from these vectors. */
function scoresOfPyLate(name: string, vectors: readonly Float32Array[]): readonly (readonly number[])[] {
  const folder = path.join(left, name);
  writeFileSync(
    path.join(folder, 'served.f32'),
    Buffer.concat(vectors.map((each) => new Uint8Array(each.buffer))),
  );
  const python = path.join(repositoryRoot, 'models/pylate/.venv/bin/python');
  const options = { encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
  const printed = execFileSync(
    python,
    [path.join(repositoryRoot, 'models/pylate/score.py'), folder],
    options,
  );
  return JSON.parse(printed) as number[][];
}

/**
 * The most by which storing vectors in 8 bits can change a score. For unit vectors q and d, stored as r and e, |q.d - r.e| is
 * at most |q - r| |d| + |r| |d - e| (Cauchy and Schwarz). A score is a sum of the largest of these products.
 */
function mostLost(
  stored: readonly Float32Array[],
  exact: readonly Float32Array[],
  [query, document]: readonly [number, number],
  dim: number,
): number {
  const lostOf = (text: number): readonly number[] => {
    const [ours, theirs] = [stored[text]!, exact[text]!];
    return Array.from({ length: ours.length / dim }, (_, row) =>
      Math.hypot(
        ...ours.subarray(row * dim, (row + 1) * dim).map((value, i) => value - theirs[row * dim + i]!),
      ),
    );
  };
  const ofDocument = Math.max(...lostOf(document));
  return lostOf(query).reduce((sum, lost) => sum + lost + (1 + lost) * ofDocument, 0);
}

/** The largest difference of a component. */
function furthest(ours: readonly Float32Array[], theirs: readonly Float32Array[]): number {
  expect(ours.map(({ length }) => length)).toEqual(theirs.map(({ length }) => length));
  return Math.max(
    ...ours.map((rows, text) =>
      rows.reduce((most, value, i) => Math.max(most, Math.abs(value - theirs[text]![i]!)), 0),
    ),
  );
}
