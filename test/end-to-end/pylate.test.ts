/**
 * Checkpoints that PyLate made, exported by `models/convert.sh` and served here, against what PyLate itself computes with them:
 * token vectors, scores and rankings. Every night, because PyTorch is some gigabytes to install;
 * `TEST_PYLATE=DIRECTORY` takes what an earlier run left in that directory.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { rounds } from '../rounds.ts';
import { startEncoders, type Encoders, callOptions } from '../support/encoder/encoders.ts';
import { createTenant, runCommand } from '../support/running/command-line.ts';
import {
  makeScratch,
  repositoryRoot,
  startServer,
  type Scratch,
  type ServerProcess,
} from '../support/running/server.ts';
import { find, makeIndex, put } from '../support/running/stage.ts';

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
  if (given !== undefined && existsSync(path.join(left, 'modernbert/export/model.onnx'))) return;
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

  test.each(['bert', 'modernbert'])(
    'of the %s family gives its vectors, and its scores and ranks within 8 bits',
    async (family) => {
      const { expected, vectors } = expectedOf(family);
      const added = await runCommand(['models', 'add', path.join(left, family, 'export'), '--name', family], {
        MAXSIMD_DATA_DIR: scratch.data,
      });
      expect(added).toMatchObject({ code: 0, stderr: '' });

      const encoders = await startEncoders({
        modelDirectories: [path.join(scratch.data, 'models', family, '1')],
      });
      const vectorsDiffer = await differences(encoders, expected, vectors).finally(() => encoders.close());
      expect(vectorsDiffer.queries).toBeLessThan(1e-3);
      // Stored in 8 bits: half a step of the largest component, a unit vector's at most 1.
      expect(vectorsDiffer.documents).toBeLessThan(0.5 / 127 + 1e-3);

      const { client } = await createTenant(server);
      const index = await makeIndex(client, { model: family });
      for (let from = 0; from < expected.documents.length; from += 50) {
        const texts = expected.documents.slice(from, from + 50);
        const stored = await put(
          client,
          index.id,
          texts.map((text, i) => ({ doc_id: String(from + i), text })),
        );
        expect(stored.upserted_chunks).toBe(texts.length);
      }
      // Ranks of PyLate hold wherever its scores differ by more than 8 bits can tell. Weights drawn at random put many close.
      let scores = 0;
      let moved = 0;
      let bestTenKept = 0;
      for (const [q, query] of expected.queries.entries()) {
        const { results } = await find(client, index.id, { query, top_k: 100, candidate_k: 500 });
        expect(results).toHaveLength(100);
        const theirs = expected.scores[q]!;
        const best = theirs.toSorted((x, y) => y - x);
        for (const [i, { doc_id, score }] of results.entries()) {
          const there = theirs[Number(doc_id)]!;
          // A query token's share of the score, which is a sum over them.
          scores = Math.max(scores, Math.abs(score - there) / expected.rows[q]!);
          expect(Math.abs(there - best[i]!) / expected.rows[q]!).toBeLessThan(5e-3);
          if (there !== best[i]) moved += 1;
          if (i < 10 && there >= best[9]!) bestTenKept += 1;
        }
      }
      expect(scores).toBeLessThan(5e-3);
      const places = expected.queries.length * 100;
      expect(bestTenKept).toBeGreaterThan(0.9 * expected.queries.length * 10);
      console.log(family, { ...vectorsDiffer, scores, moved, places, bestTenKept });
    },
    600_000,
  );
});

/** The largest difference of a component, of queries and of documents. */
async function differences(
  { pool }: Encoders,
  expected: Expected,
  vectors: readonly Float32Array[],
): Promise<{ readonly queries: number; readonly documents: number }> {
  const options = callOptions(pool, { deadlineMs: Date.now() + 300_000 });
  let queries = 0;
  for (const [q, text] of expected.queries.entries()) {
    const encoded = await pool.encodeQuery(text, options);
    expect(encoded.rows).toBe(expected.rows[q]);
    queries = Math.max(queries, furthest(encoded.vectors, vectors[q]!));
  }
  let documents = 0;
  const chunking = { maxTokens: pool.models()[0]!.windowTokensMax, overlapTokens: 0, minimumChunkTokens: 1 };
  for await (const document of pool.encodeDocuments(expected.documents, {
    ...options,
    chunking,
    onTokenCounts: () => undefined,
  })) {
    const at = expected.queries.length + document.documentIndex;
    expect([...document.chunkRows]).toEqual([expected.rows[at]]);
    const halves = new Float16Array(
      document.scales.buffer,
      document.scales.byteOffset,
      document.scales.length,
    );
    const floats = Float32Array.from(
      document.vectors,
      (value, i) => value * halves[Math.floor(i / expected.dim)]!,
    );
    documents = Math.max(documents, furthest(floats, vectors[at]!));
  }
  return { queries, documents };
}

function furthest(a: Float32Array, b: Float32Array): number {
  expect(a.length).toBe(b.length);
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
}
