/** An index open in a process of its own, which answers one search after the other: what is bounded is this process. */
import { readFileSync } from 'node:fs';
import { createEngine, type KernelName } from '../../src/index/engine/native.ts';
import { openEmbeddings } from '../search/embedding-directory.ts';
import { OpenIndex, type SealedIndex } from '../search/engine-index.ts';
import { topK } from '../search/engine-rows.ts';
import { staticState } from '../search/states.ts';
import { synthesise } from '../search/synthetic/synthetic.ts';
import type { Corpus, Query } from '../search/corpus.ts';

/** What is searched: directories of embeddings, or generated vectors. */
export interface CorpusChoice {
  readonly embeddings: string | undefined;
  readonly chunks: number;
  readonly meanRows: number;
  readonly queries: number;
  readonly seed: number;
}

export interface StageOrder {
  readonly corpus: CorpusChoice;
  readonly sealed: SealedIndex;
  readonly kernel: string;
  readonly threads: number;
}

export interface StageSearch {
  readonly query: Query;
  readonly candidateK: number;
}

export interface StageAnswer {
  readonly milliseconds: number;
  readonly candidatesMs: number;
  readonly exactMs: number;
  readonly plan: string;
  /** Pages that were waited for. */
  readonly faults: number;
  /** Resident bytes of the process: its own, and those of mapped files. */
  readonly anonymousBytes: number;
  readonly mappedBytes: number;
}

export function openCorpus({ embeddings, chunks, ...generated }: CorpusChoice): Corpus {
  if (embeddings !== undefined) return openEmbeddings(embeddings, chunks === 0 ? undefined : chunks);
  return synthesise({ chunks: chunks || 10_000, ...generated });
}

async function serve(order: StageOrder): Promise<void> {
  const corpus = openCorpus(order.corpus);
  const engine = createEngine({ threads: order.threads, kernel: order.kernel as KernelName });
  const index = await OpenIndex.open({ engine, corpus }, order.sealed, staticState.changes);
  process.on('message', (search: StageSearch) => void answer(index, search));
  process.on('disconnect', () => {
    index.close();
    engine.close();
  });
  process.send!({});
}

async function answer(index: OpenIndex, { query, candidateK }: StageSearch): Promise<void> {
  const faults = process.resourceUsage().majorPageFault;
  const startedAt = performance.now();
  const { plan, timings } = await index.search(query, {
    candidateK,
    topK,
    plan: 'auto',
    selectivity: undefined,
  });
  const milliseconds = performance.now() - startedAt;
  const { candidatesMs, exactMs } = timings;
  process.send!({
    milliseconds,
    candidatesMs,
    exactMs,
    plan,
    faults: process.resourceUsage().majorPageFault - faults,
    anonymousBytes: residentBytes('RssAnon'),
    mappedBytes: residentBytes('RssFile'),
  } satisfies StageAnswer);
}

function residentBytes(kind: 'RssAnon' | 'RssFile'): number {
  const [, kibibytes = '0'] =
    new RegExp(`${kind}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}

if (import.meta.main) process.once('message', (order: StageOrder) => void serve(order));
