/**
 * Other engines on the same vectors. Each is a program that builds its index once, asks every query and prints one line a
 * setting. LanceDB runs in this process. They are installed under the cache.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { installLocked } from '../../lib/install-locked.ts';
import { documentOfChunks, type Corpus, type Query } from '../corpus.ts';
import { lancePoints } from '../lancedb-peer.ts';
import { recall, type Ranking } from '../measure.ts';
import { EmbeddingWriter } from '../embedding-directory.ts';
import { documentsOf, rowsOf, type TokenMatrices } from '../corpus.ts';
import { componentsOf } from '../../lib/vectors.ts';
import { clocks, Times, type Clock, type Point } from './times.ts';

export const peerNames = ['next-plaid', 'tachiom', 'lancedb'] as const;
export type PeerName = (typeof peerNames)[number];

export interface PeerOptions {
  readonly peers: readonly PeerName[];
  readonly corpus: Corpus;
  readonly queries: readonly Query[];
  readonly truth: readonly Ranking[];
  /** With rows of length 1: LanceDB knows only cosine. */
  readonly unit: { readonly queries: readonly Query[]; readonly truth: readonly Ranking[] };
  readonly threads: number;
  readonly clock: Clock;
  readonly rounds: number;
  readonly topK: number;
  readonly cache: string;
  readonly onProgress: (line: string) => void;
  /** Why a peer has no rows. */
  readonly skipped: string[];
}

const peersDirectory = path.join(import.meta.dirname, 'peers');

/** A line that a program prints for a setting: the chunks that each query found, and the times of all queries, round after round. */
const line = z.object({
  settings: z.string(),
  buildSeconds: z.number(),
  milliseconds: z.array(z.number()),
  found: z.array(z.array(z.number())),
  memoryBytes: z.number(),
});

export async function* peerPoints(options: PeerOptions): AsyncGenerator<Point> {
  for (const peer of options.peers) {
    try {
      if (peer === 'lancedb') yield* ofLance(options);
      else yield* ofProgram(peer, options);
    } catch (error) {
      options.skipped.push(`${peer}: skipped (${(error as Error).message.split('\n', 1)[0]})`);
    }
  }
}

function* ofProgram(peer: 'next-plaid' | 'tachiom', options: PeerOptions): Generator<Point> {
  const { corpus, queries, truth, threads, clock, rounds, cache, onProgress } = options;
  const [program, ...first] = peer === 'tachiom' ? installTachiom(cache) : buildNextPlaid(cache);
  const embeddings = write(corpus, queries, cache);
  const index = path.join(embeddings, peer);
  const documents = documentOfChunks(corpus);
  onProgress(`${peer}, ${threads} threads`);
  const asked = [embeddings, index, String(rounds), String(threads), clock];
  const printed = execFileSync(program!, [...first, ...asked], {
    env: { ...process.env, RAYON_NUM_THREADS: String(threads) },
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for (const text of printed.split('\n').filter((each) => each.startsWith('{'))) {
    const { settings, milliseconds, found, memoryBytes } = line.parse(JSON.parse(text));
    const times = new Times();
    for (const [at, time] of milliseconds.entries()) times.add(at % queries.length, time);
    const answers = found.map((chunks) => [...new Set(chunks.map((chunk) => documents[chunk]!))]);
    yield {
      variant: peer,
      state: 'static',
      kernel: '',
      threads,
      settings: `${settings}, ${(memoryBytes / 2 ** 20).toFixed(0)} MiB`,
      recall_at_10: recall(truth, answers, 10),
      recall_at_100: recall(truth, answers, 100),
      ...times.summary(),
    };
  }
}

async function* ofLance(options: PeerOptions): AsyncGenerator<Point> {
  const { corpus, threads, clock, rounds, cache, topK, onProgress } = options;
  const now = clocks[clock];
  const { queries, truth } = options.unit;
  const installed = path.join(import.meta.dirname, '..', 'peers');
  installLocked(installed, '0.6 GB', onProgress);
  const directory = path.join(cache, `lancedb-${identityOf(corpus)}`);
  const points = lancePoints(installed, { corpus, topK, directory, onProgress });
  for await (const { settings, search } of points) {
    const found: Ranking[] = [];
    const times = new Times();
    for (const query of queries) found.push(await search(query));
    for (let round = 0; round < rounds; round++) {
      for (const [at, query] of queries.entries()) {
        const startedAt = now();
        await search(query);
        times.add(at, now() - startedAt);
      }
    }
    yield {
      variant: 'lancedb, unit rows',
      state: 'static',
      kernel: '',
      threads,
      settings,
      recall_at_10: recall(truth, found, 10),
      recall_at_100: recall(truth, found, 100),
      ...times.summary(),
    };
  }
}

/** Scales token vectors to length 1, as a peer that knows only cosine does. Rows without direction are left out. */
export function withUnitRows({ vectors, rows }: Query, dim: number): Query {
  const kept: Float32Array[] = [];
  for (let row = 0; row < rows; row++) {
    const values = vectors.subarray(row * dim, (row + 1) * dim);
    const length = Math.hypot(...values);
    if (length > 1e-6) kept.push(values.map((value) => value / length));
  }
  return { rows: kept.length, vectors: Float32Array.from(kept.flatMap((values) => [...values])) };
}

/** Compiled for this processor. */
function buildNextPlaid(cache: string): readonly string[] {
  const target = path.resolve(cache, 'next-plaid');
  execFileSync('cargo', ['build', '--release', '--locked', '--quiet'], {
    cwd: path.join(peersDirectory, 'next-plaid'),
    env: { ...process.env, CARGO_TARGET_DIR: target, RUSTFLAGS: '-C target-cpu=native' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return [path.join(target, 'release', 'maxsimd-bench-next-plaid')];
}

/** Its own wheel, which asks for glibc 2.39 and also runs with an older one. It uses AVX2 and no AVX-512. */
function installTachiom(cache: string): readonly string[] {
  const environment = path.resolve(cache, 'tachiom-wheel');
  const python = path.join(environment, 'bin', 'python');
  if (!existsSync(path.join(environment, 'installed'))) {
    const folders = 'import sysconfig; print(sysconfig.get_path("purelib"))';
    const pip = ['-m', 'pip', 'install', '--quiet'];
    execFileSync('python3', ['-m', 'venv', environment]);
    execFileSync(python, [...pip, 'numpy']);
    const target = execFileSync(python, ['-c', folders], { encoding: 'utf8' }).trim();
    const wheel = ['--no-deps', '--only-binary', ':all:', '--platform', 'manylinux_2_39_x86_64'];
    const requirements = path.join(peersDirectory, 'tachiom', 'requirements.txt');
    execFileSync(python, [...pip, ...wheel, '--target', target, '-r', requirements]);
    writeFileSync(path.join(environment, 'installed'), '');
  }
  return [python, path.join(peersDirectory, 'tachiom', 'search.py')];
}

/** Writes the documents of this corpus and the queries into a directory of their own. */
function write(corpus: Corpus, queries: readonly Query[], cache: string): string {
  const directory = path.resolve(cache, `peers-${identityOf(corpus)}-${queries.length}`);
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

function identityOf(corpus: Corpus): string {
  return createHash('sha256').update(corpus.identity).digest('hex').slice(0, 16);
}
