/**
 * Contents of a data directory as PostgreSQL can hold them. Its text has no U+0000, which older releases took for a part of a
 * tenant's name: a tenant with such a name gets another one, and keeps its id.
 */
import { columnsOf, type CatalogContents, type Row } from '../../catalog/contents.ts';
import { assertInvariant } from '../../errors.ts';

export interface StorableContents extends CatalogContents {
  /** For people, once `rows` of the tenants have been read: who was renamed. */
  readonly remarks: readonly string[];
}

const columns = columnsOf('tenants').map(([name]) => name);
const [id, name] = [columns.indexOf('id'), columns.indexOf('name')];

export function storableContents(contents: CatalogContents): StorableContents {
  const remarks = new Map<string, string>();
  const rename = (row: Row): Row => {
    const [tenant, old] = [row[id], row[name]];
    assertInvariant(typeof tenant === 'string' && typeof old === 'string', 'a tenant has an id and a name');
    if (!old.includes('\0')) return row;
    const renamed = old.replaceAll('\0', '\ufffd');
    remarks.set(
      tenant,
      `Tenant ${tenant} is called ${JSON.stringify(renamed)} now: PostgreSQL cannot hold U+0000, which was in its name.`,
    );
    return row.with(name, renamed);
  };
  return {
    ...contents,
    get remarks() {
      return [...remarks.values()];
    },
    async *rows(table) {
      for await (const rows of contents.rows(table)) yield table === 'tenants' ? rows.map(rename) : rows;
    },
  };
}
