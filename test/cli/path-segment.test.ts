/** An identifier given to the command line never names another thing than it says. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ApiClient } from '../../src/cli/api/client.ts';
import { endpointOf } from '../../src/cli/api/endpoint.ts';
import { remoteAdministration } from '../../src/cli/catalog/remote-administration.ts';
import type { Administration } from '../../src/service/administration.ts';
import { ApiDouble } from '../support/http/api-double.ts';

let double: ApiDouble;
let url: string;
let client: ApiClient;
let admin: Administration;
beforeEach(async () => {
  double = new ApiDouble();
  url = await double.listen();
  const policy = { unavailableMsMax: 0, brokenAttemptsMax: 1 };
  client = new ApiClient(endpointOf(url, 'k', 1000), { policy });
  admin = remoteAdministration(url, 'k');
});
afterEach(() => double.close());

const calls: Record<string, (id: string) => Promise<unknown>> = {
  revokeKey: (id) => admin.revokeKey(id),
  getTenant: (id) => admin.getTenant(id),
  setTenantLimits: (id) => admin.setTenantLimits(id, {}),
  deleteTenant: (id) => admin.deleteTenant(id),
  createKey: (id) => admin.createKey(id, 'full'),
  listKeys: (id) => admin.listKeys(id),
  usageDays: (id) => admin.usageDays(id, '2026-01-01', '2026-01-02'),
  updateIndex: (id) => client.updateIndex(id, { name: 'n' }),
  deleteIndex: (id) => client.deleteIndex(id),
  upsert: (id) => client.upsert(id, [], new AbortController().signal),
  search: (id) => client.search(id, { query: 'q' }),
};

test.each(Object.keys(calls))('%s refuses what is no identifier, and sends nothing', async (name) => {
  for (const id of ['', '.', '..', '\ud83d'])
    await expect(calls[name]!(id)).rejects.toMatchObject({ code: 'usage_error' });
  expect(double.requests).toEqual([]);
});

test('dot segments in percent-encoding stay an identifier', async () => {
  await client.deleteIndex('%2e%2e').catch(() => undefined);
  expect(double.requests.map(({ path }) => path)).toEqual(['/v1/indexes/%252e%252e']);
});

test.each(['/', '?', '/?', '#'])('an address may end with %j', async (end) => {
  const policy = { unavailableMsMax: 0, brokenAttemptsMax: 1 };
  await new ApiClient(endpointOf(url + end, 'k', 1000), { policy }).usage();
  expect(double.requests.map(({ path }) => path)).toEqual(['/v1/usage']);
});
