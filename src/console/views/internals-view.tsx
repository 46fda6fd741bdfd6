/** How an index is stored, for those who know the engine. */
import type { Api, Index, IndexDescription } from '../api.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { bytes, count } from '../format.ts';
import { recallRange } from '../parts/recall.ts';
import { Table } from '../parts/table.tsx';
import { useLoaded } from '../work.ts';

export function InternalsView({ api, index }: { api: Api; index: Index }) {
  const { result, failure } = useLoaded(async () => (await api.describe(index.id)).body);
  if (result === undefined) return <Failure of={failure} />;
  const { segments } = result;
  const total = (value: (segment: IndexDescription['segments'][number]) => number): number =>
    segments.reduce((sum, segment) => sum + value(segment), 0);
  return (
    <section aria-label="Internals">
      <dl class="facts">
        <Fact name="Token vectors" value={count(total(({ token_vectors: rows }) => rows))} />
        <Fact name="Size" value={bytes(total((segment) => segment.bytes + segment.derived_bytes))} />
        <Fact name="Recall of the best ten" value={recallRange(index)} />
        <Fact name="Candidates come from" value={candidatesOf(segments)} />
      </dl>
      {segments.length > 0 && (
        <Table
          name="Segments"
          columns={[
            { name: 'Segment' },
            { name: 'Documents', number: true },
            { name: 'Replaced or deleted', number: true },
            { name: 'Chunks', number: true },
            { name: 'Token vectors', number: true },
            { name: 'Size', number: true },
            { name: 'Derived', number: true },
          ]}
          rows={segments.map((segment, at) => ({
            key: String(at),
            cells: [
              segment.state,
              count(segment.documents),
              count(segment.records - segment.documents),
              count(segment.chunks),
              count(segment.token_vectors),
              bytes(segment.bytes),
              bytes(segment.derived_bytes),
            ],
          }))}
        />
      )}
    </section>
  );
}

/** The ways that a search can choose between. */
function candidatesOf(segments: IndexDescription['segments']): string {
  const coded = segments.filter(({ centroids }) => centroids > 0);
  if (coded.length === 0) return 'all chunks, each scored exactly';
  const chunks = coded.reduce((sum, segment) => sum + segment.chunks, 0);
  const centroids = Math.max(...coded.map((segment) => segment.centroids));
  return `codes of ${count(chunks)} chunks (${count(centroids)} centroids), if that is faster than scoring all chunks`;
}
