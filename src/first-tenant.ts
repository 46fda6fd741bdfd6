/** What a newcomer needs: on an empty data directory a tenant is made, and its key shown once with lines to paste. */
import { randomUUID } from 'node:crypto';
import { generateApiKey, hashApiKey } from './catalog/api-key.ts';
import type { Catalog } from './catalog/contract.ts';
import { defaultLimits } from './catalog/default-limits.ts';

/** The text to print; `undefined` when there are tenants already. */
export async function greetFirstTenant(
  catalog: Catalog,
  { pepper, url }: { readonly pepper: Uint8Array; readonly url: string },
): Promise<string | undefined> {
  if ((await catalog.listTenants()).length > 0) return undefined;
  const { id, apiKey } = generateApiKey();
  const tenant = await catalog.createTenant({
    id: randomUUID(),
    name: 'default',
    limits: defaultLimits,
    key: { id, hash: hashApiKey(apiKey, pepper) },
  });
  return `
The data directory was empty: tenant "${tenant.name}" (${tenant.id}) was made.
Its API key is shown this once. To try the service, paste into another terminal:

  export MAXSIMD_URL=${url}
  export MAXSIMD_API_KEY=${apiKey}
  api() { curl -sS -H "Authorization: Bearer $MAXSIMD_API_KEY" -H 'Content-Type: application/json' "$@"; echo; }

  INDEX=$(api $MAXSIMD_URL/v1/indexes -d '{"name":"first"}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
  api $MAXSIMD_URL/v1/indexes/$INDEX/documents -d '{"documents":[
    {"doc_id":"whale","text":"The blue whale is the largest animal known to have existed."},
    {"doc_id":"bee","text":"Honey bees dance to tell each other where flowers are."}]}'
  api $MAXSIMD_URL/v1/indexes/$INDEX/search -d '{"query":"how do insects communicate?"}'

`;
}
