/** The rows of the peers, on query rows of length 1. */
import { createHash } from 'node:crypto';
import path from 'node:path';
import type { NativeEngine } from '../../src/index/engine/native.ts';
import { installedVersion, installLocked } from '../lib/install-locked.ts';
import { chunksOf, tokenVectorsOf, type Corpus, type Query } from './corpus.ts';
import { openLance } from './lancedb-peer.ts';
import { measure, type Effort, type Ranking } from './measure.ts';
import type { Peer } from './peer.ts';
import type { SearchReport, SearchRow } from './report.ts';

export const peerNames = ['lancedb'] as const;
export type PeerName = (typeof peerNames)[number];

export interface PeerRowOptions {
  readonly engine: NativeEngine;
  readonly corpus: Corpus;
  readonly topK: number;
  /** With rows of length 1. */
  readonly queries: readonly Query[];
  readonly truth: readonly Ranking[];
  readonly effort: Effort;
  readonly cache: string;
  readonly onProgress: (line: string) => void;
}

export interface PeerRows {
  readonly rows: readonly SearchRow[];
  readonly versions: Readonly<Record<string, string>>;
  readonly skipped: SearchReport['skipped'];
}

/** A peer that cannot be installed or fails is skipped, with the reason in the report. */
export async function peerRows(names: readonly PeerName[], options: PeerRowOptions): Promise<PeerRows> {
  const rows: SearchRow[] = [];
  const versions: Record<string, string> = {};
  const skipped = peerNames
    .filter((name) => !names.includes(name))
    .map((name) => ({ variant: name as string, reason: 'not asked for' }));
  for (const name of names) {
    try {
      const { peer, version } = openPeer(options.onProgress);
      versions[name] = version;
      for await (const row of rowsOf(peer, options)) rows.push(row);
    } catch (error) {
      skipped.push({ variant: name, reason: (error as Error).message });
    }
  }
  return { rows, versions, skipped };
}

function openPeer(onProgress: (line: string) => void): { readonly peer: Peer; readonly version: string } {
  const peersDirectory = path.join(import.meta.dirname, 'peers');
  installLocked(peersDirectory, '0.6 GB', onProgress);
  return { peer: openLance(peersDirectory), version: installedVersion(peersDirectory, '@lancedb/lancedb') };
}

async function* rowsOf(peer: Peer, options: PeerRowOptions): AsyncGenerator<SearchRow> {
  const { engine, corpus, topK, queries, truth, effort, cache, onProgress } = options;
  const chunks = chunksOf(corpus);
  const identity = createHash('sha256').update(corpus.identity).digest('hex').slice(0, 16);
  const directory = path.join(cache, `${peer.name}-${chunks}-${identity}`);
  const points = peer.operatingPoints({
    corpus,
    topK,
    directory,
    threads: engine.info.threads,
    onProgress,
  });
  for await (const { variant, settings, candidateK, built, search } of points) {
    const measured = await measure(search, queries, truth, effort);
    onProgress(
      `${variant} ${settings}: recall ${measured.recall_at_10.toFixed(4)}, p50 ${measured.p50_ms.toFixed(1)} ms`,
    );
    yield {
      chunks,
      token_vectors: tokenVectorsOf(corpus),
      variant,
      state: 'static',
      active_segment: 'empty',
      selectivity: 1,
      queries: 'unit',
      candidate_k: candidateK,
      ...measured,
      derived_bytes_per_chunk: built.derivedBytes / chunks,
      disk_bytes_per_chunk: null,
      memory_bytes_per_chunk: null,
      build_s: built.buildSeconds,
      open_s: null,
      settings,
    };
  }
}
