/** An index that is open in a process of its own, which answers one search after the other. The test bounds its memory. */
import { readFileSync } from 'node:fs';
import type { Corpus, Query } from '../../bench/search/corpus.ts';
import { OpenIndex, type SealedIndex } from '../../bench/search/engine-index.ts';
import { staticState } from '../../bench/search/states.ts';
import { createEngine } from '../../src/index/engine/native.ts';

export interface Order {
  readonly sealed: SealedIndex;
  /** An open index needs no more of the corpus. */
  readonly shape: Pick<Corpus, 'dim' | 'documentChunks' | 'chunkRows'>;
}

export interface Answer {
  readonly milliseconds: number;
  /** Pages that were waited for. */
  readonly faults: number;
  readonly anonymousBytes: number;
}

process.once('message', async ({ sealed, shape }: Order) => {
  const engine = createEngine({ threads: 1, kernel: 'auto' });
  const index = await OpenIndex.open({ engine, corpus: shape as Corpus }, sealed, staticState.changes);
  process.on('message', async (query: Query) => {
    const faults = process.resourceUsage().majorPageFault;
    const startedAt = performance.now();
    await index.search(query, { candidateK: 200, topK: 100, plan: 'auto', selectivity: undefined });
    process.send!({
      milliseconds: performance.now() - startedAt,
      faults: process.resourceUsage().majorPageFault - faults,
      anonymousBytes: anonymousBytes(),
    } satisfies Answer);
  });
  process.on('disconnect', () => {
    index.close();
    engine.close();
  });
  process.send!({});
});

function anonymousBytes(): number {
  const status = readFileSync('/proc/self/status', 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) * 1024;
}
