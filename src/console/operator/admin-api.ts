/** The requests of the operators' pages to the admin API. */
import type { UsageOfDay, UsageSummary } from '@maxsimd/client';
import { Connection, type Answer } from '../connection.ts';
import type { JsonObject } from '../parts/json-object.ts';

export interface Limits {
  readonly input_tokens: string;
  readonly documents: number;
  readonly requests_per_minute: number;
  readonly max_concurrent_requests: number;
}

/** The word for an allowance that does not limit, and the numbers that stand for it in the API. */
export const unlimited = 'unlimited';
export const unlimitedValues: Partial<Limits> = {
  input_tokens: '9223372036854775807',
  documents: Number.MAX_SAFE_INTEGER,
};

export interface Tenant {
  readonly tenant_id: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly limits: Limits;
  /** The allowances that do not limit. Absent from services of the release before. */
  readonly unlimited?: readonly (keyof Limits)[];
  readonly created_at: string;
}

export interface ListedTenant extends Tenant {
  /** The counts of this month. Absent from services of the release before. */
  readonly usage?: UsageSummary['usage'];
}

export interface TenantInUse extends Tenant {
  /** Memory of the engine for its open indexes, in the process that answered. */
  readonly memory_bytes: number;
}

export interface Key {
  readonly key_id: string;
  readonly name?: string | null;
  readonly access: 'full' | 'read';
  readonly requests_per_minute: number | null;
  readonly max_concurrent_requests: number | null;
  readonly created_at: string;
  readonly revoked_at: string | null;
  /** Absent from services of the release before, as the name is. */
  readonly last_used_at?: string | null;
}

export interface AuditEntry {
  readonly id: number;
  readonly at: string;
  readonly actor: string;
  readonly act: string;
  readonly tenant_id: string | null;
  /** Null: erased. Absent from services of the release before. */
  readonly tenant_name?: string | null;
  readonly detail: JsonObject;
}

interface Page<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

interface Made {
  /** It is shown this once. */
  readonly api_key: string;
}

export class AdminApi extends Connection {
  tenants(cursor?: string): Promise<Answer<Page<ListedTenant>>> {
    return this.ask('GET', `tenants${after('?', cursor)}`);
  }

  createTenant(name: string): Promise<Answer<Tenant & Made>> {
    return this.ask('POST', 'tenants', { name });
  }

  tenant(id: string): Promise<Answer<TenantInUse>> {
    return this.ask('GET', `tenants/${id}`);
  }

  updateTenant(id: string, body: JsonObject): Promise<Answer<Tenant>> {
    return this.ask('PATCH', `tenants/${id}`, body);
  }

  deleteTenant(id: string): Promise<Answer<unknown>> {
    return this.ask('DELETE', `tenants/${id}`);
  }

  usageDays(id: string, from: string): Promise<Answer<{ readonly data: readonly UsageOfDay[] }>> {
    return this.ask('GET', `tenants/${id}/usage?from=${from}`);
  }

  keys(id: string): Promise<Answer<{ readonly data: readonly Key[] }>> {
    return this.ask('GET', `tenants/${id}/keys`);
  }

  createKey(id: string, key: Partial<Pick<Key, 'name' | 'access'>>): Promise<Answer<Key & Made>> {
    return this.ask('POST', `tenants/${id}/keys`, key);
  }

  revokeKey(keyId: string): Promise<Answer<unknown>> {
    return this.ask('DELETE', `keys/${keyId}`);
  }

  audit(cursor?: string): Promise<Answer<Page<AuditEntry>>> {
    return this.ask('GET', `audit?limit=50${after('&', cursor)}`);
  }
}

function after(mark: string, cursor: string | undefined): string {
  return cursor === undefined ? '' : `${mark}cursor=${encodeURIComponent(cursor)}`;
}
