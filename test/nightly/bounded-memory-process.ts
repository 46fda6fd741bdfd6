/** An index that is open in a process of its own, which answers one search after the other. The test bounds its memory. */
import { readFileSync } from 'node:fs';
import type { Corpus, Query } from '../../bench/search/corpus.ts';
import { OpenIndex, type SealedIndex } from '../../bench/search/engine-index.ts';
import { staticState } from '../../bench/search/states.ts';
import { createEngine } from '../../src/index/engine/native.ts';

export interface Order {
  readonly sealed: SealedIndex;
  /** The part of the corpus that an open index needs: it reads no vectors. */
  readonly corpus: Omit<Corpus, 'read'>;
}

export interface Answer {
  readonly milliseconds: number;
  /** Pages that were waited for. */
  readonly faults: number;
  readonly anonymousBytes: number;
}

process.once('message', async ({ sealed, corpus }: Order) => {
  const engine = createEngine({ threads: 1, kernel: 'auto' });
  const read = (): never => {
    throw new Error('this is a bug: an open index reads no vectors of the corpus');
  };
  const index = await OpenIndex.open({ engine, corpus: { ...corpus, read } }, sealed, staticState.changes);
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
