/** An index whose searches miss more or less of the best, as a curve says: it drives the real measuring without an engine. */
import type { NativeSearch, NativeSearchResult, SegmentInfo } from '../../../src/index/engine/native.ts';
import { IndexRecall, type BreadthMove, type RecallState } from '../../../src/index/recall/index-recall.ts';
import { defaultRecallSettings, Measuring } from '../../../src/index/recall/measuring.ts';

export interface Curve {
  readonly start: number;
  /** The share of the best ten that is missed with a breadth of 1. It falls with this power of the breadth. */
  readonly missedAtOne: number;
  readonly steepness: number;
  /** The share of searches that miss anything; 0 = all miss the same. */
  readonly hardShare: number;
  readonly random?: () => number;
}

export const searched: NativeSearch = {
  query: new Float32Array(8),
  offsets: new Float32Array(1),
  topK: 10,
  candidateK: 50,
  generation: 7,
  components: false,
  timeoutMs: 100,
};

export function resultOf(
  scores: Float32Array,
  plan: NativeSearchResult['plan'] = 'codes',
): NativeSearchResult {
  return { scores, plan, timings: { cpuMs: 1 } } as NativeSearchResult;
}

export function segmentOf(chunks: number, codebook = 'codebook-1'): SegmentInfo {
  return { chunks, codebook } as SegmentInfo;
}

/** A process that measures every search. */
export function measuresAll(more: Partial<ConstructorParameters<typeof Measuring>[0]> = {}): Measuring {
  const settings = { ...defaultRecallSettings, share: 1, shareOfNew: 1, load: Infinity };
  return new Measuring({ settings, threads: 2, searchesWait: () => false, ...more });
}

/** Measures `searches`. */
export async function simulated(curve: Curve, searches: number) {
  const { steepness, hardShare, random = () => 0 } = curve;
  let { missedAtOne } = curve;
  const missedWith = (breadth: number): number => Math.min(1, missedAtOne * breadth ** -steepness);
  const exact = Float32Array.from({ length: 100 }, (_, place) => 100 - place);
  const moves: BreadthMove[] = [];
  let owed = 0;
  const foundBy = (breadth: number): Float32Array => {
    const missed = missedWith(breadth);
    if (hardShare === 0) {
      // The fraction of a result that is missed is carried over to the next search.
      owed += missed * 10;
      const whole = Math.floor(owed);
      owed -= whole;
      return exact.map((score, place) => (place < 10 && place >= 10 - whole ? -1 : score));
    }
    const chance = random() < hardShare ? missed / hardShare : 0;
    return exact.map((score, place) => (place < 10 && random() < chance ? -1 : score));
  };
  const known: RecallState = {
    breadth: curve.start,
    comparisons: [],
    chunks: 1_000,
    codebooks: ['codebook-1'],
  };
  const recall = new IndexRecall({
    measuring: measuresAll(),
    segments: () => [segmentOf(1_000)],
    ask: async ({ plan, breadth = 1 }) =>
      plan === 'exact' ? resultOf(exact, 'exact') : resultOf(foundBy(breadth).toSorted().toReversed()),
    moves: () => 0,
    known,
    onMove: (move) => moves.push(move),
  });
  const measure = async (count: number): Promise<void> => {
    for (let search = 0; search < count; search += 1)
      if (recall.chooses('codes')) await recall.measure(searched);
  };
  await measure(searches);
  return {
    moves,
    measure,
    async change(missed: number): Promise<void> {
      missedAtOne = missed;
    },
    get report() {
      return recall.report;
    },
    get recall(): number {
      return 1 - missedWith(recall.breadth);
    },
  };
}
