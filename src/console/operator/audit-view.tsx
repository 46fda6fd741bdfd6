import type { AdminApi } from './admin-api.ts';
import { count, shown } from '../format.ts';
import { Failure } from '../parts/failure.tsx';
import { Pages, usePages } from '../parts/pages.tsx';
import { Table } from '../parts/table.tsx';
import { useLoaded } from '../work.ts';

export function AuditView({ api }: { api: AdminApi }) {
  const pages = usePages();
  const audit = useLoaded(async () => (await api.audit(pages.cursor)).body, pages.cursor);
  return (
    <>
      <h1>Audit</h1>
      <Failure of={audit.failure} />
      {audit.result !== undefined && (
        <Table
          name="Audit"
          columns={[
            { name: 'Act' },
            { name: 'When' },
            { name: 'Who' },
            { name: 'Tenant' },
            { name: 'Detail' },
          ]}
          rows={audit.result.data.map((entry) => ({
            key: String(entry.id),
            cells: [
              entry.act.replaceAll('_', ' '),
              entry.at.slice(0, 19).replace('T', ' '),
              <code>{entry.actor}</code>,
              entry.tenant_id !== null && <code>{entry.tenant_id}</code>,
              Object.entries(entry.detail)
                .map(([name, value]) => `${name.replaceAll('_', ' ')} ${inWords(value)}`)
                .join(', '),
            ],
          }))}
        />
      )}
      <Pages of={pages} next={audit.result?.next_cursor} />
    </>
  );
}

function inWords(value: unknown): string {
  const text = shown(value);
  return /^\d+$/.test(text) ? count(BigInt(text)) : text;
}
