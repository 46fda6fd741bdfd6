/** Finds the tenant or index that an argument means: by its identifier, or by its name if no other has that name. */
import type { Catalog, IndexRow, Tenant } from '../../catalog/contract.ts';
import { CommandFailure } from '../failure.ts';

export async function tenantOf(catalog: Pick<Catalog, 'listTenants'>, word: string): Promise<Tenant> {
  return oneOf('tenant', word, await catalog.listTenants(), ({ id, name }) => `${id} (${name})`);
}

/** One index, the indexes of a tenant, one index of a tenant, or everything. */
export interface IndexChoice {
  readonly index?: string | undefined;
  readonly tenant?: string | undefined;
}

export function isEverything({ index, tenant }: IndexChoice): boolean {
  return index === undefined && tenant === undefined;
}

export async function chosenIndexes(
  catalog: Pick<Catalog, 'listTenants' | 'listIndexes'>,
  { index, tenant }: IndexChoice,
): Promise<readonly IndexRow[]> {
  const tenants = tenant === undefined ? await catalog.listTenants() : [await tenantOf(catalog, tenant)];
  const rows: IndexRow[] = [];
  for (const { id } of tenants) rows.push(...(await catalog.listIndexes(id)));
  if (index === undefined) return rows;
  return [oneOf('index', index, rows, ({ id, tenantId }) => `${id} (tenant ${tenantId})`)];
}

/** An identifier wins over a name that looks like one, because it is unique. Both cases mean the same (RFC 9562). */
function oneOf<T extends { readonly id: string; readonly name: string }>(
  what: string,
  word: string,
  rows: readonly T[],
  describe: (row: T) => string,
): T {
  const byId = rows.find(({ id }) => id === word.toLowerCase());
  if (byId !== undefined) return byId;
  const [found, ...others] = rows.filter(({ name }) => name === word);
  if (found === undefined) throw new CommandFailure('not_found', `there is no ${what} ${word}`);
  if (others.length > 0) {
    const choices = [found, ...others].map(describe).join(', ');
    throw new CommandFailure(
      'ambiguous',
      `more than one ${what} is called ${word}, give one by id: ${choices}`,
    );
  }
  return found;
}
