/** The console of operators, which the admin listener serves: tenants with their keys, limits and usage, and the audit log. */
import { AdminApi } from './admin-api.ts';
import { AuditView } from './audit-view.tsx';
import { Frame } from '../parts/frame.tsx';
import { TenantView } from './tenant-view.tsx';
import { TenantsView } from './tenants-view.tsx';

export function OperatorPage() {
  return (
    <Frame
      connect={AdminApi}
      sections={{ '#/': 'Tenants', '#/audit': 'Audit' }}
      place="maxsimd for operators"
      keyName="Operator key"
      note="The session lasts one hour and may do what the key may. The audit log has all that is done with it."
    >
      {(api, address) => {
        const tenantId = /^#\/tenants\/([\w-]+)$/.exec(address)?.[1];
        if (tenantId !== undefined) return <TenantView key={tenantId} api={api} tenantId={tenantId} />;
        return address === '#/audit' ? <AuditView api={api} /> : <TenantsView api={api} />;
      }}
    </Frame>
  );
}
