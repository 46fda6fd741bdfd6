/** One tenant: its state, limits, keys and usage, and its end. */
import { useState } from 'preact/hooks';
import { unlimited, unlimitedValues, type AdminApi, type Limits, type Tenant } from './admin-api.ts';
import { Asked } from '../parts/asked.tsx';
import { DayPlot } from '../parts/day-plot.tsx';
import { Failure } from '../parts/failure.tsx';
import { Check, Field, submitted, tied } from '../parts/field.tsx';
import { bytes, day, daysAgo, minute } from '../format.ts';
import { NewKey } from './new-key.tsx';
import { Table } from '../parts/table.tsx';
import { useLoaded, useWork } from '../work.ts';

const plottedDays = 30;

const limitNames: readonly (readonly [keyof Limits, string])[] = [
  ['requests_per_minute', 'Requests a minute'],
  ['max_concurrent_requests', 'Requests at a time'],
  ['input_tokens', 'Input tokens a month'],
  ['documents', 'Stored documents'],
];

interface Props {
  readonly api: AdminApi;
  readonly tenant: Tenant;
  /** Called after a change of the tenant itself. */
  readonly onChange: () => void;
}

export function TenantView({ api, tenantId }: { api: AdminApi; tenantId: string }) {
  const loaded = useLoaded(async () => (await api.tenant(tenantId)).body);
  const { result: tenant } = loaded;
  if (tenant === undefined) return <Failure of={loaded.failure} />;
  const props = { api, tenant, onChange: () => loaded.start() };
  return (
    <>
      <div>
        <h1>{tenant.name}</h1>
        <p class="quiet">
          {tenant.suspended ? 'suspended' : 'active'}, created {day(tenant.created_at)}, has{' '}
          {bytes(tenant.memory_bytes)} of the engine's memory, id <code>{tenant.tenant_id}</code>
        </p>
      </div>
      <Usage {...props} />
      <Keys {...props} />
      <LimitsForm {...props} />
      <State {...props} />
      <Delete {...props} />
    </>
  );
}

function Usage({ api, tenant }: Props) {
  const from = daysAgo(plottedDays - 1);
  const days = useLoaded(async () => (await api.usageDays(tenant.tenant_id, from)).body.data);
  const { result } = days;
  return (
    <section aria-label="Usage">
      <Failure of={days.failure} />
      {result !== undefined && (
        <div class="cards days">
          <DayPlot name="Input tokens" from={from} days={result} value={(of) => BigInt(of.input_tokens)} />
          <DayPlot name="Requests" from={from} days={result} value={(of) => BigInt(of.requests)} />
        </div>
      )}
    </section>
  );
}

function Keys({ api, tenant }: Props) {
  const keys = useLoaded(async () => (await api.keys(tenant.tenant_id)).body.data);
  const [name, setName] = useState('');
  const [reading, setReading] = useState(false);
  const create = useWork(async () => {
    const named = name === '' ? {} : { name };
    const { body } = await api.createKey(tenant.tenant_id, { ...named, access: reading ? 'read' : 'full' });
    setName('');
    keys.start();
    return body;
  });
  return (
    <section aria-label="Keys">
      <h2>Keys</h2>
      <Failure of={keys.failure} />
      {keys.result !== undefined && (
        <Table
          name="Keys"
          columns={[
            { name: 'Key' },
            { name: 'Name' },
            { name: 'May' },
            { name: 'Created' },
            { name: 'Last used' },
            { name: 'State', number: true },
          ]}
          rows={keys.result.map((key) => ({
            key: key.key_id,
            cells: [
              <code>{key.key_id}</code>,
              key.name ?? '–',
              key.access === 'read' ? 'read' : 'read and write',
              day(key.created_at),
              key.last_used_at ? minute(key.last_used_at) : '–',
              key.revoked_at === null ? (
                <Revoke api={api} keyId={key.key_id} onRevoked={() => keys.start()} />
              ) : (
                `revoked ${day(key.revoked_at)}`
              ),
            ],
          }))}
        />
      )}
      <form aria-label="New key" onSubmit={submitted(create)}>
        <div class="ask">
          <Field name="Name of a new key (optional)">
            <input maxLength={64} {...tied(name, setName)} />
          </Field>
          <Check name="read only" value={reading} onChange={setReading} />
          <button type="submit" disabled={create.busy}>
            Create a key
          </button>
        </div>
        <Failure of={create.failure} />
        {create.result !== undefined && <NewKey of={create.result.api_key} />}
      </form>
    </section>
  );
}

/** Asks once more, because programs with the key stop working. */
function Revoke({ api, keyId, onRevoked }: { api: AdminApi; keyId: string; onRevoked: () => void }) {
  const [asked, setAsked] = useState(false);
  const revoke = useWork(async () => {
    await api.revokeKey(keyId);
    onRevoked();
  });
  return (
    <>
      <button
        type="button"
        class={asked ? 'danger' : 'plain'}
        disabled={revoke.busy}
        onClick={() => (asked ? revoke.start() : setAsked(true))}
      >
        {asked ? 'Revoke for good' : 'Revoke'}
      </button>
      <Failure of={revoke.failure} />
    </>
  );
}

function LimitsForm({ api, tenant, onChange }: Props) {
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>(
    Object.fromEntries(
      limitNames.map(([name]) => [
        name,
        tenant.unlimited?.includes(name) ? unlimited : String(tenant.limits[name]),
      ]),
    ),
  );
  const save = useWork(async () => {
    const changed = limitNames.map(([name]) => {
      const value = limits[name] ?? '';
      if (value === unlimited) return [name, unlimitedValues[name]];
      return [name, name === 'input_tokens' ? value : Number(value)];
    });
    await api.updateTenant(tenant.tenant_id, { limits: Object.fromEntries(changed) });
    onChange();
    return limits;
  });
  return (
    <form class="panel" aria-label="Limits" onSubmit={submitted(save)}>
      <h2>Limits</h2>
      <div class="cards">
        {limitNames.map(([name, text]) => (
          <Field key={name} name={text}>
            <input
              required
              inputMode={name in unlimitedValues ? 'text' : 'numeric'}
              pattern={name in unlimitedValues ? `[0-9]+|${unlimited}` : '[0-9]+'}
              {...tied(limits[name] ?? '', (value) => setLimits({ ...limits, [name]: value }))}
            />
          </Field>
        ))}
      </div>
      <p class="quiet">Tokens and documents without a limit are “{unlimited}”.</p>
      <div class="row">
        <button type="submit" disabled={save.busy}>
          Save
        </button>
        {save.result === limits && <span role="status">The limits are saved.</span>}
      </div>
      <Failure of={save.failure} />
    </form>
  );
}

/** Asks before it suspends, because all programs of the tenant stop working. */
function State({ api, tenant, onChange }: Props) {
  const [asked, setAsked] = useState(false);
  const change = useWork(async () => {
    await api.updateTenant(tenant.tenant_id, { suspended: !tenant.suspended });
    setAsked(false);
    onChange();
  });
  const ask = { start: () => (tenant.suspended ? change.start() : setAsked(true)) };
  return (
    <form class="panel" aria-label="State" onSubmit={submitted(ask)}>
      <h2>{tenant.suspended ? 'Resume' : 'Suspend'}</h2>
      <p class="quiet">While a tenant is suspended, all its requests are refused. Nothing is deleted.</p>
      {asked ? (
        <Asked
          name="Suspend the tenant"
          text={`All programs of ${tenant.name} stop working until it is resumed.`}
          act={`Suspend ${tenant.name}`}
          keep="Keep it active"
          busy={change.busy}
          onAct={() => change.start()}
          onKeep={() => setAsked(false)}
        />
      ) : (
        <button type="submit" disabled={change.busy}>
          {tenant.suspended ? 'Resume' : 'Suspend'}
        </button>
      )}
      <Failure of={change.failure} />
    </form>
  );
}

function Delete({ api, tenant }: Props) {
  const [name, setName] = useState('');
  const remove = useWork(async () => {
    await api.deleteTenant(tenant.tenant_id);
    location.hash = '#/';
  });
  return (
    <form class="panel" aria-label="Delete" onSubmit={submitted(remove)}>
      <h2>Delete</h2>
      <p class="quiet">Keys, indexes, documents and usage are gone at once, and cannot be brought back.</p>
      <div class="ask">
        <Field name={`Write the name of the tenant to delete it: ${tenant.name}`}>
          <input required {...tied(name, setName)} />
        </Field>
        <button type="submit" class="danger" disabled={remove.busy || name !== tenant.name}>
          Delete the tenant
        </button>
      </div>
      <Failure of={remove.failure} />
    </form>
  );
}
