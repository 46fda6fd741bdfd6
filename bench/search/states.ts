/** The states that an index is measured in, as changes to its sealed segments. */
import { seededRandom } from '../lib/seeded-random.ts';
import { documentsOf, rowOf, type Corpus } from './corpus.ts';
import { segmentTokenVectorsMax, type Changes } from './engine-index.ts';
import type { SearchRow } from './report.ts';

export interface IndexState extends Pick<SearchRow, 'state' | 'active_segment'> {
  readonly changes: Changes;
}

const unchanged: Changes = { rewritten: [], deleted: [], seal: false };

/** Nothing in the active segment; filters are measured here too. */
export const staticState: IndexState = { state: 'static', active_segment: 'empty', changes: unchanged };

/** The last documents written once more, so that the same documents are live and the active segment fills. */
export function activeStates(corpus: Corpus): readonly IndexState[] {
  return (['half', 'full'] as const).map((active_segment) => {
    const rowsMax = (segmentTokenVectorsMax - 1) * (active_segment === 'half' ? 0.5 : 1);
    const documents = documentsOf(corpus);
    let first = documents;
    while (first > 0 && rowOf(corpus, documents) - rowOf(corpus, first - 1) <= rowsMax) first--;
    const rewritten = Array.from({ length: documents - first }, (_, i) => first + i);
    return { state: 'static', active_segment, changes: { rewritten, deleted: [], seal: false } };
  });
}

/** A quarter of the documents, drawn by chance, replaced by themselves and a quarter deleted; nothing merged. */
export function churnedState(corpus: Corpus, seed: number): IndexState {
  const random = seededRandom(seed);
  const rewritten: number[] = [];
  const deleted: number[] = [];
  for (let document = 0; document < documentsOf(corpus); document++) {
    const fate = random();
    if (fate < 0.25) rewritten.push(document);
    else if (fate < 0.5) deleted.push(document);
  }
  return { state: 'churned', active_segment: 'empty', changes: { rewritten, deleted, seal: true } };
}
