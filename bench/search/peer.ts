/** The interface of a peer of the search benchmark. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Corpus } from './corpus.ts';
import type { Searcher } from './measure.ts';

/** One setting of a peer that is built and ready to search; good until the next one is asked for. */
export interface OperatingPoint {
  readonly variant: string;
  readonly settings: string;
  /** Chunks scored exactly at most, where the peer has such a number. */
  readonly candidateK: number | null;
  readonly built: Built;
  readonly search: Searcher;
}

export interface Built {
  readonly buildSeconds: number;
  /** Disk beyond the vectors. */
  readonly derivedBytes: number;
}

export interface PeerOptions {
  readonly corpus: Corpus;
  /** Chunks to return. */
  readonly topK: number;
  /** Its own directory, kept between runs over the same corpus. */
  readonly directory: string;
  readonly threads: number;
  readonly onProgress: (line: string) => void;
}

export interface Peer {
  readonly name: string;
  /** Builds, and gives one setting after the other; the query rows given to it have length 1. */
  operatingPoints(options: PeerOptions): AsyncGenerator<OperatingPoint>;
}

/** Builds into an empty directory, or finds what an earlier run has built there; `build` tells the derived bytes. */
export async function builtOnce(directory: string, build: () => Promise<number>): Promise<Built> {
  const file = path.join(directory, 'built.json');
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Built;
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const startedAt = performance.now();
  const derivedBytes = await build();
  const built = { buildSeconds: (performance.now() - startedAt) / 1000, derivedBytes };
  writeFileSync(file, JSON.stringify(built));
  return built;
}
