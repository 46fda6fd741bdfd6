/**
 * Measures the memory that the engine keeps for an index, and finds how it chooses candidates. It opens the sealed segments
 * in this process and searches once. It writes nothing, and a server may run beside it.
 */
import type { RowShape } from '../../contracts/row-shape.ts';
import type { IndexState } from '../../contracts/index-state.ts';
import type { NativeIndex, NativeSearchResult } from '../../index/engine/native.ts';
import { messageOf } from '../failure.ts';
import type { IndexAccess } from './index-access.ts';
import type { StoredSegment } from './stored-indexes.ts';

export interface IndexCosts {
  /** Directories, codebooks and codes of sealed segments. The page cache has the rest. */
  readonly memoryBytes: number;
  readonly plan: NativeSearchResult['plan'];
  readonly reason: string;
}

export interface SealedSegments {
  readonly shape: RowShape;
  readonly segments: readonly Pick<StoredSegment, 'id' | 'own' | 'recordsReferenced'>[];
  readonly chunks: number;
  readonly hasCodes: boolean;
}

/** A query of usual length, with the defaults of a request. */
const queryRows = 32;
const [topK, candidateK] = [10, 200];

export async function costsOf(
  { engine, exactTokenVectorsMax }: Pick<IndexAccess, 'engine' | 'exactTokenVectorsMax'>,
  state: IndexState,
  { shape, segments, chunks, hasCodes }: SealedSegments,
): Promise<IndexCosts> {
  const before = engine.memory();
  const native = engine.createIndex({ ...shape, exactTokenVectorsMax });
  try {
    for (const { id, own, recordsReferenced } of segments)
      await native.openSegment(id, await own.open(), { recordsReferenced, sealed: true });
    loadLifespans(native, state, new Set(segments.map(({ id }) => id)));
    const after = engine.memory();
    const { plan } = await native.search({
      query: Float32Array.from({ length: queryRows * shape.dim }, (_, at) => Math.sin(at)),
      offsets: new Float32Array(queryRows),
      topK,
      candidateK,
      generation: state.generation,
      components: false,
      timeoutMs: 60_000,
    });
    return {
      memoryBytes: after.takenBytes + after.codesBytes - before.takenBytes - before.codesBytes,
      plan,
      reason: reasonOf(plan, chunks, hasCodes),
    };
  } catch (error) {
    // A segment is damaged, or a server has merged it away meanwhile.
    return { memoryBytes: 0, plan: 'exact', reason: `cannot be searched: ${messageOf(error)}` };
  } finally {
    native.close();
  }
}

function loadLifespans(native: NativeIndex, { versions }: IndexState, sealed: ReadonlySet<number>): void {
  const { segmentIds, records, versionIds, born, died } = versions;
  const kept = [...segmentIds.keys()].filter((row) => sealed.has(segmentIds[row]!));
  const of = (column: { readonly [row: number]: number }): Float64Array =>
    Float64Array.from(kept, (row) => column[row]!);
  native.loadLifespans({
    segmentIds: of(segmentIds),
    records: Uint32Array.from(of(records)),
    versionIds: of(versionIds),
    born: of(born),
    died: of(died),
  });
}

function reasonOf(plan: IndexCosts['plan'], chunks: number, hasCodes: boolean): string {
  if (plan === 'device') return `all ${chunks} chunks are scored on the GPU`;
  if (plan === 'graph') return `${chunks} chunks: a graph finds the inverted lists among very many`;
  if (plan === 'lists') return `${chunks} chunks: inverted lists are cheaper than a scan of all codes`;
  if (plan === 'codes') return `${chunks} chunks: a scan of all codes is cheaper than inverted lists`;
  if (!hasCodes) return 'there are no codes (yet)';
  return `${chunks} chunks: an exact scan of all is fast enough`;
}
