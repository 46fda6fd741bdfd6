/** Both catalogs keep the match fields of indexes alike. */
import { describe, expect, it } from 'vitest';
import type { IndexChange } from '../../src/catalog/contract.ts';
import type { CatalogUnderTest } from './conformance.ts';
import { indexInput, newIndex, newTenant } from '../support/stages/catalog-fixture.ts';

export function describeMatchFields(current: () => CatalogUnderTest): void {
  const actsOn = async (tenantId: string): Promise<readonly string[]> =>
    (await current().catalog.listAudit({ limit: 100, tenantId })).map(({ act }) => act);

  describe('match fields', () => {
    it('change by themselves or with the name, and stay with the id', async () => {
      const under = current();
      const { catalog } = under;
      const { id: tenantId } = await newTenant(catalog);
      const fields = ['part.number', 'Größe\0"1"', '書籍 📚'];
      const input = { ...indexInput(tenantId, 'first'), matchFields: fields };
      const created = await catalog.createIndex(input, 10);
      expect(created).toMatchObject({ outcome: 'created', index: { matchFields: fields } });
      const other = await newIndex(catalog, tenantId);
      expect(other.matchFields).toEqual([]);
      await catalog.swapIndexNames(tenantId, input.id, other.id);
      await under.reopen();
      const first = await under.catalog.getIndex(tenantId, input.id);
      expect(first).toMatchObject({ name: other.name, matchFields: fields });
      expect(await under.catalog.listIndexes(tenantId)).toEqual([first, { ...other, name: 'first' }]);

      const update = (change: IndexChange) => under.catalog.updateIndex(tenantId, input.id, change);
      const outcome = 'updated';
      expect(await update({ matchFields: ['code'] })).toEqual({
        outcome,
        index: { ...first, matchFields: ['code'] },
      });
      expect(await update({ name: 'code' })).toMatchObject({
        index: { name: 'code', matchFields: ['code'] },
      });
      expect(await update({ name: 'none', matchFields: [] })).toMatchObject({
        index: { name: 'none', matchFields: [] },
      });
      expect(await update({ name: 'first', matchFields: ['code'] })).toEqual({ outcome: 'duplicate_name' });
      const last = { ...first, name: 'none', matchFields: [] };
      expect(await update({})).toEqual({ outcome, index: last });
      expect(await under.catalog.getIndex(tenantId, input.id)).toEqual(last);
    });

    it('are in the audit log, at most ten changes of a tenant in an hour', async () => {
      const under = current();
      const { id } = await newTenant(under.catalog);
      const other = await newTenant(under.catalog);
      const input = { ...indexInput(id, 'codes'), matchFields: ['a', 'b'] };
      await under.catalog.createIndex(input, 10);
      await under.catalog.createIndex(indexInput(id, 'without'), 10);
      const set = (matchFields: readonly string[]) =>
        under.catalog.updateIndex(id, input.id, { matchFields });
      await set(['a']);
      await set(['a']);
      await under.catalog.updateIndex(id, input.id, { name: 'more codes' });
      await set([]);
      const entries = await under.catalog.listAudit({ limit: 100, tenantId: id });
      expect(entries.map(({ act, detail }) => [act, detail])).toEqual([
        ...[0, 1, 2].map((fields) => ['match_fields_changed', { index_id: input.id, match_fields: fields }]),
        ['tenant_created', expect.anything()],
      ]);
      for (let round = 0; round < 12; round += 1) await set([`field ${round}`]);
      expect((await actsOn(id)).filter((act) => act === 'match_fields_changed')).toHaveLength(10);
      await under.catalog.createIndex({ ...indexInput(other.id, 'codes'), matchFields: ['a'] }, 10);
      expect(await actsOn(other.id)).toEqual(['match_fields_changed', 'tenant_created']);
    });
  });
}
