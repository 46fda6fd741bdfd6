/**
 * Other engines on the same vectors. Each is a program that builds its indexes once, asks every query and prints one line a
 * setting. They are installed under the cache.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { documentOfChunks, documentsOf, rowsOf, tokenVectorsOf } from '../corpus.ts';
import type { Corpus, Query, TokenMatrices } from '../corpus.ts';
import { EmbeddingWriter } from '../embedding-directory.ts';
import { recall, type Ranking } from '../measure.ts';
import { componentsOf } from '../../lib/vectors.ts';
import { exactProgram, programOf, type PeerName } from './peer-programs.ts';
import { Times, type Clock, type Point } from './times.ts';

/** Documents that exhaustive scans find, by the stored rows and by the same rows scaled to length 1. */
export interface Truth {
  readonly stored: readonly Ranking[];
  readonly unit: readonly Ranking[];
}

/** By query rows with their token weights, and by query rows of length 1: LanceDB knows only cosine, which drops the weights. */
export interface Truths {
  readonly weighted: Truth;
  readonly unweighted: Truth;
}

export interface PeerOptions {
  readonly peers: readonly PeerName[];
  readonly corpus: Corpus;
  readonly queries: readonly Query[];
  readonly truths: Truths;
  readonly threads: number;
  readonly clock: Clock;
  readonly rounds: number;
  readonly cache: string;
  readonly onProgress: (line: string) => void;
  /** Why a peer has no rows. */
  readonly skipped: string[];
}

/** A line that a program prints for a setting: the chunks that each query found, and the times of all queries, round after round. */
const line = z.object({
  settings: z.string(),
  buildSeconds: z.number(),
  /** All files that a search of this setting needs. */
  diskBytes: z.number(),
  milliseconds: z.array(z.number()),
  found: z.array(z.array(z.number())),
});

const rankings = z.array(z.array(z.number()));
const unitRows = z.object({ weighted: rankings, unit: rankings });

export async function* peerPoints(options: PeerOptions): AsyncGenerator<Point> {
  for (const peer of options.peers) {
    try {
      yield* pointsOf(peer, options);
    } catch (error) {
      options.skipped.push(`${peer}: stopped (${(error as Error).message.split('\n', 1)[0]})`);
    }
  }
}

async function* pointsOf(peer: PeerName, options: PeerOptions): AsyncGenerator<Point> {
  const { corpus, queries, truths, threads, clock, rounds, cache, onProgress } = options;
  const { command, versions } = programOf(peer, cache, onProgress);
  const embeddings = write(corpus, queries, cache);
  const truth = peer === 'lancedb' ? truths.unweighted : truths.weighted;
  const documents = documentOfChunks(corpus);
  onProgress(`${peer}, ${threads} threads`);
  const [index, cores] = [path.join(embeddings, `${peer}-${versions}`), availableParallelism()];
  for await (const text of linesOf([...command, embeddings, index], cores)) onProgress(text);
  const asked = [embeddings, index, String(rounds), String(threads), clock];
  for await (const text of linesOf([...command, ...asked], threads)) {
    const { settings, milliseconds, found, diskBytes, buildSeconds } = line.parse(JSON.parse(text));
    const times = new Times();
    for (const [at, time] of milliseconds.entries()) times.add(at % queries.length, time);
    const answers = found.map((chunks) => documentsOfChunks(chunks, documents));
    yield {
      variant: peer,
      state: 'static',
      kernel: '',
      threads,
      settings: `${settings}, built in ${buildSeconds.toFixed(0)} s`,
      bytes_a_token: diskBytes / tokenVectorsOf(corpus),
      recall_at_10: recall(truth.stored, answers, 10),
      recall_at_100: recall(truth.stored, answers, 100),
      unit_recall_at_10: recall(truth.unit, answers, 10),
      scan_recall_at_10: null,
      ...times.summary(),
    };
  }
}

/** The lines of JSON that a program prints, as they come. Throws when it fails. */
async function* linesOf([program, ...given]: readonly string[], threads: number): AsyncGenerator<string> {
  const count = String(threads);
  const names = ['RAYON', 'OMP', 'OPENBLAS', 'MKL'].map((library) => `${library}_NUM_THREADS`);
  const limits = Object.fromEntries([...names, 'LANCE_CPU_THREADS'].map((name) => [name, count]));
  const child = spawn(program!, given, {
    env: { ...process.env, ...limits },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  });
  for await (const text of createInterface({ input: child.stdout })) if (text.startsWith('{')) yield text;
  const status = await ended;
  if (status !== 0) throw new Error(`it ended with ${status ?? 'a signal'}`);
}

/** The best documents by rows of length 1, for query rows with and without weights. Kept beside the embeddings. */
export async function unitTruths(
  options: Pick<PeerOptions, 'corpus' | 'queries' | 'cache' | 'onProgress'>,
): Promise<{ readonly weighted: readonly Ranking[]; readonly unweighted: readonly Ranking[] }> {
  const { corpus, queries, cache, onProgress } = options;
  const embeddings = write(corpus, queries, cache);
  const file = path.join(embeddings, 'unit-rows.json');
  if (!existsSync(file)) {
    onProgress('scanning rows of length 1');
    const program = [...exactProgram(cache, onProgress), embeddings, file];
    for await (const text of linesOf(program, availableParallelism())) onProgress(text);
  }
  const found = unitRows.parse(JSON.parse(readFileSync(file, 'utf8')));
  const documents = documentOfChunks(corpus);
  const rankingsOf = (all: readonly (readonly number[])[]): readonly Ranking[] =>
    all.map((chunks) => documentsOfChunks(chunks, documents));
  return { weighted: rankingsOf(found.weighted), unweighted: rankingsOf(found.unit) };
}

function documentsOfChunks(chunks: readonly number[], documents: Uint32Array): Ranking {
  return [...new Set(chunks.map((chunk) => documents[chunk]!))];
}

/** Scales query rows to length 1, as a cosine does. Rows without direction are left out. */
export function withUnitRows({ vectors, rows }: Query, dim: number): Query {
  const kept: Float32Array[] = [];
  for (let row = 0; row < rows; row++) {
    const values = vectors.subarray(row * dim, (row + 1) * dim);
    const length = Math.hypot(...values);
    if (length > 1e-6) kept.push(values.map((value) => value / length));
  }
  return { rows: kept.length, vectors: Float32Array.from(kept.flatMap((values) => [...values])) };
}

/** Writes the documents of this corpus and the queries into a directory of their own. */
function write(corpus: Corpus, queries: readonly Query[], cache: string): string {
  const identity = createHash('sha256').update(corpus.identity).digest('hex').slice(0, 16);
  const directory = path.resolve(cache, `peers-${identity}-${queries.length}`);
  if (existsSync(path.join(directory, 'README'))) return directory;
  mkdirSync(directory, { recursive: true });
  const writer = new EmbeddingWriter(directory);
  for (let document = 0; document < documentsOf(corpus); document++) {
    const matrices = corpus.read(document, document + 1);
    writer.document(rowsOf(corpus, document), { ...matrices, vectors: bytesOf(matrices, corpus) });
  }
  writer.finish(queries, { centring: corpus.centring, readme: `${corpus.description}\n` });
  return directory;
}

/** A byte a component: other engines do not read rows of few bits. */
function bytesOf({ vectors, scales }: TokenMatrices, corpus: Corpus): Int8Array {
  if (corpus.rowBits === 8) return vectors;
  const all = new Int8Array(scales.length * corpus.dim);
  for (let row = 0; row < scales.length; row++) all.set(componentsOf(vectors, corpus, row), row * corpus.dim);
  return all;
}
