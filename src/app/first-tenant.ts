/**
 * Helps a newcomer: makes a tenant in an empty data directory, and prints its key once with lines to paste. Standard output
 * that is no terminal is usually kept (in a log file or a log service). Then the key goes to a file that only its owner can
 * read, and the lines read it from there.
 */
import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { generateApiKey, hashApiKey } from '../catalog/api-key.ts';
import type { Catalog } from '../catalog/contract.ts';
import { defaultLimits } from '../catalog/default-limits.ts';
import { syncDirectory } from '../catalog/sync-directory.ts';
import { unlimitedAllowances } from '../service/limits/unlimited.ts';

export interface Place {
  readonly url: string;
  readonly hasConsole: boolean;
}

const keyFile = 'first-api-key';
/** Nobody has chosen allowances. An import and an evaluation on this host do not meet the rate. */
const limits = {
  ...defaultLimits,
  ...unlimitedAllowances,
  requestsPerMinute: 1_000_000,
  maxConcurrentRequests: 64,
};

export interface Greeting extends Place {
  readonly pepper: Uint8Array;
  readonly directory: string;
  readonly terminal: boolean;
}

/** The text to print; `undefined` if there are tenants already. */
export async function greetFirstTenant(catalog: Catalog, greeting: Greeting): Promise<string | undefined> {
  const { pepper, url, terminal } = greeting;
  if ((await catalog.listTenants()).length > 0) return undefined;
  const { id, apiKey } = generateApiKey();
  const directory = path.resolve(greeting.directory);
  // The file comes first. A start that is cut short after it makes another key.
  if (!terminal) await writeKey(directory, apiKey);
  const tenant = await catalog.createTenant({
    id: randomUUID(),
    name: 'default',
    limits,
    key: { id, hash: hashApiKey(apiKey, pepper) },
  });
  const file = path.join(directory, keyFile);
  const [where, key] = terminal
    ? ['Its API key is shown only once.', apiKey]
    : [`Its API key is in ${file}: keep it elsewhere and delete the file.`, `$(cat ${quoted(file)})`];
  return `
The data directory was empty, so the tenant "${tenant.name}" (${tenant.id}) was created.
${where}

${addressLines(greeting)}
To try the service, paste into another terminal:

  export MAXSIMD_URL=${url}
  export MAXSIMD_API_KEY=${key}
  api() { curl -sS -H "Authorization: Bearer $MAXSIMD_API_KEY" -H 'Content-Type: application/json' "$@"; echo; }

  INDEX=$MAXSIMD_URL/v1/indexes/name:first
  api $MAXSIMD_URL/v1/indexes -d '{"name":"first","if_exists":"return"}'
  api $INDEX/documents -d '{"documents":[
    {"doc_id":"whale","text":"The blue whale is the largest animal known to have existed."},
    {"doc_id":"bee","text":"Honey bees dance to tell each other where flowers are."}]}'
  api $INDEX/search -d '{"query":"how do insects communicate?"}'

`;
}

/** Where people find the service. */
export function addressLines({ url, hasConsole }: Place): string {
  return `${hasConsole ? `  Console      ${url}/console   (sign in with an API key)\n` : ''}  HTTP API     ${url}/docs\n`;
}

/** The file is durable when this resolves, because the key cannot be shown again. */
async function writeKey(directory: string, apiKey: string): Promise<void> {
  const file = path.join(directory, keyFile);
  // A file of a start that was cut short may have another mode.
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

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
