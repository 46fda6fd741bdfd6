import type { Api, Index, IndexDescription } from '../api.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { bytes, count, day } from '../format.ts';
import { SearchPanel } from '../parts/search-panel.tsx';
import { useLoaded } from '../work.ts';

export function IndexView({ api, indexId }: { api: Api; indexId: string }) {
  const index = useLoaded(() => api.index(indexId));
  const description = useLoaded(() => api.describe(indexId));
  const row = index.result?.body;
  return (
    <>
      <h1>{row?.name ?? 'Index'}</h1>
      <Failure of={index.failure ?? description.failure} />
      {row !== undefined && (
        <>
          <SearchPanel api={api} indexId={indexId} />
          <h2>Contents</h2>
          <dl class="facts">
            <Fact name="Model" value={`${row.model} / ${row.model_version}`} />
            <Fact name="Status" value={row.status} />
            <Fact name="Created" value={day(row.created_at)} />
            <Fact
              name="Chunks, in tokens"
              value={`${row.chunking.max_tokens}, ${row.chunking.overlap_tokens} shared`}
            />
            <Fact name="Recall of the best 10" value={recallOf(row)} />
            {description.result !== undefined && <Totals of={description.result.body} />}
          </dl>
          {description.result !== undefined && <Segments of={description.result.body} />}
        </>
      )}
    </>
  );
}

function recallOf({ recall }: Index): string {
  return recall ? `${(100 * recall.at_10.mean).toFixed(1)}%` : 'not measured yet';
}

function Totals({ of: { documents, segments } }: { of: IndexDescription }) {
  const total = (value: (segment: IndexDescription['segments'][number]) => number): number =>
    segments.reduce((sum, segment) => sum + value(segment), 0);
  return (
    <>
      <Fact name="Documents" value={count(documents)} />
      <Fact name="Chunks" value={count(total(({ chunks }) => chunks))} />
      <Fact name="Token vectors" value={count(total(({ token_vectors: rows }) => rows))} />
      <Fact name="On disk" value={bytes(total((segment) => segment.bytes + segment.derived_bytes))} />
      <Fact name="Candidates come from" value={candidatesOf(segments)} />
    </>
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

function Segments({ of: { segments } }: { of: IndexDescription }) {
  if (segments.length === 0) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Segments">
      <table>
        <caption>Segments</caption>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Documents
            </th>
            <th scope="col" class="number">
              Replaced or deleted
            </th>
            <th scope="col" class="number">
              Chunks
            </th>
            <th scope="col" class="number">
              Token vectors
            </th>
            <th scope="col" class="number">
              Bytes
            </th>
            <th scope="col" class="number">
              Derived
            </th>
          </tr>
        </thead>
        <tbody>
          {segments.map((segment, at) => (
            <tr key={at}>
              <td>{segment.state}</td>
              <td class="number">{count(segment.documents)}</td>
              <td class="number">{count(segment.records - segment.documents)}</td>
              <td class="number">{count(segment.chunks)}</td>
              <td class="number">{count(segment.token_vectors)}</td>
              <td class="number">{bytes(segment.bytes)}</td>
              <td class="number">{bytes(segment.derived_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
