import { useState } from 'preact/hooks';
import { unlimited, type AdminApi, type ListedTenant } from './admin-api.ts';
import { Failure } from '../parts/failure.tsx';
import { Field, submitted, tied } from '../parts/field.tsx';
import { count, day } from '../format.ts';
import { NewKey } from './new-key.tsx';
import { Pages, usePages } from '../parts/pages.tsx';
import { Table } from '../parts/table.tsx';
import { useLoaded, useWork } from '../work.ts';

export function TenantsView({ api }: { api: AdminApi }) {
  const pages = usePages();
  const tenants = useLoaded(async () => (await api.tenants(pages.cursor)).body, pages.cursor);
  const [name, setName] = useState('');
  const create = useWork(async () => {
    const { body } = await api.createTenant(name);
    tenants.start();
    return body;
  });
  return (
    <>
      <h1>Tenants</h1>
      <form class="panel" aria-label="New tenant" onSubmit={submitted(create)}>
        <div class="ask">
          <Field name="Name of a new tenant">
            <input required {...tied(name, setName)} />
          </Field>
          <button type="submit" class="primary" disabled={create.busy}>
            Create
          </button>
        </div>
        <Failure of={create.failure} />
        {create.result !== undefined && <NewKey of={create.result.api_key} />}
      </form>
      <Failure of={tenants.failure} />
      {tenants.result !== undefined && (
        <Table
          name="Tenants"
          columns={[
            { name: 'Tenant' },
            { name: 'State' },
            { name: 'Documents', number: true },
            { name: 'Tokens this month', number: true },
            { name: 'Requests this month', number: true },
            { name: 'Limit: requests a minute', number: true },
            { name: 'Created', number: true },
          ]}
          rows={tenants.result.data.map((tenant) => ({
            key: tenant.tenant_id,
            cells: [
              <a href={`#/tenants/${tenant.tenant_id}`}>{tenant.name}</a>,
              tenant.suspended ? 'suspended' : 'active',
              <OfLimit of={tenant} name="documents" />,
              <OfLimit of={tenant} name="input_tokens" />,
              tenant.usage === undefined ? '–' : count(tenant.usage.requests),
              count(tenant.limits.requests_per_minute),
              day(tenant.created_at),
            ],
          }))}
        />
      )}
      <Pages of={pages} next={tenants.result?.next_cursor} />
    </>
  );
}

/** Usage, and below it its limit. The usage is absent from services of the release before. */
function OfLimit({ of: tenant, name }: { of: ListedTenant; name: 'documents' | 'input_tokens' }) {
  const { usage, limits, unlimited: names = [] } = tenant;
  return (
    <span class="of-limit">
      <span>{usage === undefined ? '–' : count(BigInt(usage[name]))}</span>
      <span class="quiet">{names.includes(name) ? unlimited : `of ${count(BigInt(limits[name]))}`}</span>
    </span>
  );
}
