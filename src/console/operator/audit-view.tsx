import { unlimited, unlimitedValues, type AdminApi, type AuditEntry, type Limits } from './admin-api.ts';
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
              <TenantOf entry={entry} />,
              Object.entries(entry.detail)
                .map(([name, value]) => `${name.replaceAll('_', ' ')} ${inWords(name, value)}`)
                .join(', '),
            ],
          }))}
        />
      )}
      <Pages of={pages} next={audit.result?.next_cursor} />
    </>
  );
}

/** By its name, with its id when a person points at it. An erased tenant has its id alone. */
function TenantOf({ entry: { tenant_id: id, tenant_name: name } }: { entry: AuditEntry }) {
  if (id === null) return null;
  if (typeof name !== 'string') return <code>{id}</code>;
  return (
    <a href={`#/tenants/${id}`} title={id}>
      {name}
    </a>
  );
}

function inWords(name: string, value: unknown): string {
  if (name in unlimitedValues && value === unlimitedValues[name as keyof Limits]) return unlimited;
  const text = shown(value);
  return /^\d+$/.test(text) ? count(BigInt(text)) : text;
}
