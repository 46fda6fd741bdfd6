/**
 * What a newcomer needs: on an empty data directory a tenant is made, and its key shown once with lines to
 * paste. Standard output that is no terminal is kept by somebody (a log file, a log service), so the key goes to
 * a file that only its owner reads, and the lines read it from there.
 */
import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { generateApiKey, hashApiKey } from '../catalog/api-key.ts';
import type { Catalog } from '../catalog/contract.ts';
import { defaultLimits } from '../catalog/default-limits.ts';
import { syncDirectory } from '../catalog/sync-directory.ts';

const keyFile = 'first-api-key';

export interface Greeting {
  readonly pepper: Uint8Array;
  readonly url: string;
  /** The data directory. */
  readonly directory: string;
  /** Whether a person alone reads what is printed. */
  readonly terminal: boolean;
}

/** The text to print; `undefined` when there are tenants already. */
export async function greetFirstTenant(catalog: Catalog, greeting: Greeting): Promise<string | undefined> {
  const { pepper, url, terminal } = greeting;
  if ((await catalog.listTenants()).length > 0) return undefined;
  const { id, apiKey } = generateApiKey();
  const directory = path.resolve(greeting.directory);
  // Before the tenant: a start that is cut short in between makes another one.
  if (!terminal) await writeKey(directory, apiKey);
  const tenant = await catalog.createTenant({
    id: randomUUID(),
    name: 'default',
    limits: defaultLimits,
    key: { id, hash: hashApiKey(apiKey, pepper) },
  });
  const file = path.join(directory, keyFile);
  const [where, key] = terminal
    ? ['Its API key is shown this once.', apiKey]
    : [`Its API key is in ${file}: keep it elsewhere and delete the file.`, `$(cat ${quoted(file)})`];
  return `
The data directory was empty: tenant "${tenant.name}" (${tenant.id}) was made.
${where} To try the service, paste into another terminal:

  export MAXSIMD_URL=${url}
  export MAXSIMD_API_KEY=${key}
  api() { curl -sS -H "Authorization: Bearer $MAXSIMD_API_KEY" -H 'Content-Type: application/json' "$@"; echo; }

  INDEX=$({ api $MAXSIMD_URL/v1/indexes -d '{"name":"first"}'; api $MAXSIMD_URL/v1/indexes; } |
    sed -n 's/.*"id":"\\([^"]*\\)","name":"first".*/\\1/p' | head -n 1)
  api $MAXSIMD_URL/v1/indexes/$INDEX/documents -d '{"documents":[
    {"doc_id":"whale","text":"The blue whale is the largest animal known to have existed."},
    {"doc_id":"bee","text":"Honey bees dance to tell each other where flowers are."}]}'
  api $MAXSIMD_URL/v1/indexes/$INDEX/search -d '{"query":"how do insects communicate?"}'

`;
}

/** Durable when it resolves: the key cannot be had again. */
async function writeKey(directory: string, apiKey: string): Promise<void> {
  const file = path.join(directory, keyFile);
  // A start that was cut short left it; its mode is unknown.
  await rm(file, { force: true });
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(`${apiKey}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectory(directory);
}

/** For a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
