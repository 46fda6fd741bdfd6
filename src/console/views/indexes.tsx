import type { Api } from '../api.ts';
import { Failure } from '../parts/failure.tsx';
import { day } from '../format.ts';
import { useLoaded } from '../work.ts';

export function Indexes({ api }: { api: Api }) {
  const indexes = useLoaded(() => api.indexes());
  const rows = indexes.result?.body.data;
  return (
    <>
      <h1>Indexes</h1>
      <Failure of={indexes.failure} />
      {rows?.length === 0 && <p>There is no index yet.</p>}
      {rows !== undefined && rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Indexes">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Model</th>
                <th scope="col">Status</th>
                <th scope="col">Created</th>
                <th scope="col">Id</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <th scope="row">
                    <a href={`#/indexes/${row.id}`}>{row.name}</a>
                  </th>
                  <td>
                    {row.model} / {row.model_version}
                  </td>
                  <td>{row.status}</td>
                  <td>{day(row.created_at)}</td>
                  <td>
                    <code>{row.id}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
