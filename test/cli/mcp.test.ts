/** `maxsimd mcp` with the client of the protocol's own SDK, over both transports, in front of a real service. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { exchange, open } from '../support/http/sockets.ts';
import { createKey } from '../support/commands/command-line.ts';
import { start } from '../support/commands/command-process.ts';
import { runHere } from '../support/commands/command-here.ts';
import { eventually } from '../support/running/eventually.ts';
import { repositoryRoot } from '../support/running/launch.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { passages } from '../support/running/texts.ts';

const stage = useSharedStage();
const origin = 'https://app.example.com';
const reading = ['get_document', 'list_indexes', 'search'];
let readOnlyKey: string;
let index: { readonly id: string; readonly name: string };

beforeAll(async () => {
  readOnlyKey = (await createKey(stage.server, stage.tenant.id, '--read-only')).key;
  index = await makeIndex(stage.client, { name: 'passages for agents' });
  const documents = passages
    .slice(0, 8)
    .map(({ subject, text }, place) => ({ doc_id: subject, text, metadata: { place } }));
  const long = Array.from({ length: 40 }, () => passages[8]!.text).join(' ');
  await put(stage.client, index.id, [
    ...documents,
    { doc_id: 'long', text: long, metadata: { place: 8, body: long.slice(0, 10_000) } },
  ]);
});

async function connected(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'a test', version: '1' });
  await client.connect(transport);
  onTestFinished(async () => client.close());
  return client;
}

async function overStdio(key: string, ...flags: readonly string[]): Promise<Client> {
  const { url } = stage.server;
  const args = ['src/cli/main.ts', 'mcp', '--url', url, ...flags];
  const env = { MAXSIMD_API_KEY: key };
  return connected(new StdioClientTransport({ command: process.execPath, args, env }));
}

/** The address of a process that the environment gives a key, which it must not use. */
async function served(...flags: readonly string[]): Promise<string> {
  const environment = { MAXSIMD_URL: stage.server.url, MAXSIMD_API_KEY: stage.tenant.key };
  const args = ['mcp', '--http', '0', '--allow-origin', origin, ...flags];
  const { process: child, finished } = start(args, { environment });
  onTestFinished(async () => {
    child.kill('SIGTERM');
    expect(await finished).toMatchObject({ exitCode: 0, stdout: '' });
  });
  let printed = '';
  child.stderr!.on('data', (part: Buffer) => (printed += part.toString()));
  const line = await eventually(() => /at (http:\S+)\n/.exec(printed) ?? undefined);
  return line[1]!;
}

async function overHttp(address: string, key: string): Promise<Client> {
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  const transport = new StreamableHTTPClientTransport(new URL(address), { requestInit });
  return connected(transport);
}

const toolsOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name).toSorted();

/** The structured content of a result, which its text must have, too. */
async function call(client: Client, name: string, given: Readonly<Record<string, unknown>> = {}) {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: given });
  const [{ text }] = content as [{ text: string }];
  if (isError === true) return { refused: text };
  expect(JSON.parse(text)).toEqual(structuredContent);
  // oxlint-disable-next-line typescript/no-explicit-any -- each tool has its own
  return structuredContent as any;
}

/** Both transports must pass these. */
async function readAll(client: Client): Promise<void> {
  expect(await toolsOf(client)).toEqual(reading);
  const { indexes } = await call(client, 'list_indexes');
  expect(indexes).toContainEqual(expect.objectContaining({ id: index.id, name: index.name }));
  const [first] = passages;
  const asked = { index: index.name, query: first!.question, top_k: 2 };
  const { results, usage } = await call(client, 'search', asked);
  expect(results).toHaveLength(2);
  expect(results[0]).toMatchObject({ doc_id: first!.subject, metadata: { place: 0 } });
  expect(usage.input_tokens).toBeGreaterThan(0);
  const [, second] = results;
  const next = await call(client, 'search', { ...asked, top_k: 1, offset: 1 });
  expect(next.results).toEqual([second]);
  const narrow = { ...asked, index: index.id, where: { place: { gt: 7 } } };
  const long = { doc_id: 'long' };
  expect((await call(client, 'search', narrow)).results).toMatchObject([long, long]);
  const equal = { ...asked, index: index.id, filter: { place: 8 } };
  expect((await call(client, 'search', equal)).results).toMatchObject([long, long]);
  const both = await call(client, 'search', { ...narrow, filter: { place: 3 } });
  expect(both.results).toEqual([]);
  const grouped = await call(client, 'search', { ...narrow, group_by_document: true });
  expect(grouped.results).toMatchObject([long]);
  const { results: why } = await call(client, 'search', { ...narrow, explain: true });
  expect(why[0]).toMatchObject({ maxsim: why[0].score, matches: [] });
  expect(why[0]).not.toHaveProperty('components');
  const inField = await call(client, 'search', { ...narrow, top_k: 1, text_field: 'body' });
  expect(inField.results).toMatchObject([{ passage: { text: expect.stringMatching(/\w/) } }]);
  expect(inField.results[0].metadata).toEqual({ place: 8 });
  expect(results[0]).not.toHaveProperty('passage');
  const found = await call(client, 'get_document', { index: index.id, doc_id: first!.subject });
  expect(found).toEqual({ doc_id: first!.subject, metadata: { place: 0 }, chunk_count: 1 });
}

async function refusedByService(client: Client): Promise<void> {
  const absent = await call(client, 'get_document', { index: index.id, doc_id: 'absent' });
  expect(absent.refused).toMatch(/404 not_found: .* \(request \S+\)/);
  const wrong = await call(client, 'search', {
    index: index.id,
    query: 'bees',
    where: { place: { near: 1 } },
  });
  expect(wrong.refused).toMatch(/422 validation_error: .*where\.place: must hold no operators/);
  expect((await call(client, 'search', { index: 'absent', query: 'bees' })).refused).toBe(
    'there is no index "absent"',
  );
}

/** Agents send these. */
async function readsArgumentsAsMeant(client: Client): Promise<void> {
  const nothing = { top_k: null, offset: null, filter: null, where: null, group_by_document: null };
  const absent = await call(client, 'search', { index: index.id, query: 'bees', ...nothing });
  expect(absent.results).toHaveLength(10);
  const asText = { index: index.id, query: 'bees', where: '{"place": {"gt": 7}}', group_by_document: true };
  expect((await call(client, 'search', asText)).results).toMatchObject([{ doc_id: 'long' }]);
  const noJson = await call(client, 'search', { ...asText, where: 'place > 7' });
  expect(noJson.refused).toBe('where must be an object');
  const document = { doc_id: 'as text', text: 'Honey bees dance.', metadata: null };
  const documents = JSON.stringify([document]);
  const stored = await call(client, 'upsert_documents', { index: index.id, documents });
  expect(stored).toMatchObject({ upserted_documents: 1, failed: [] });
  const wrong = await call(client, 'upsert_documents', { index: index.id, documents: 'Honey bees dance.' });
  expect(wrong.refused).toBe('documents must be an array, not string');
  await call(client, 'delete_document', { index: index.id, doc_id: 'as text' });
}

/** An argument that is dropped changes what is asked: a condition of another name would be none. */
async function refusesUnknownArguments(client: Client): Promise<void> {
  const named = { index: index.id, doc_id: passages[0]!.subject };
  const given: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    list_indexes: {},
    search: { index: index.id, query: 'bees' },
    get_document: named,
    upsert_documents: { index: index.id, documents: [{ doc_id: 'unknown', text: 'bees' }] },
    update_metadata: { ...named, metadata_merge: {} },
    delete_document: named,
    delete_documents: { index: index.id, where: { kind: 'none' } },
  };
  const offered = await toolsOf(client);
  expect(Object.keys(given).toSorted()).toEqual(offered);
  for (const name of offered) {
    const { refused } = await call(client, name, { ...given[name], filters: { place: 8 } });
    expect([name, refused]).toEqual([name, 'unknown property filters']);
  }
}

async function writeAll(client: Client, docId: string): Promise<void> {
  const documents = [{ doc_id: docId, text: 'Honey bees dance.', metadata: { kind: 'insect' } }];
  const stored = await call(client, 'upsert_documents', { index: index.id, documents });
  expect(stored).toMatchObject({ upserted_documents: 1, failed: [] });
  const document = { index: index.id, doc_id: docId };
  expect(await call(client, 'get_document', document)).toMatchObject({ metadata: { kind: 'insect' } });
  const change = { ...document, metadata_merge: { kind: null, a: { b: 1, c: null } } };
  expect(await call(client, 'update_metadata', change)).toMatchObject({ metadata: { a: { b: 1 } } });
  expect((await call(client, 'get_document', document)).metadata).toEqual({ a: { b: 1 } });
  expect(await call(client, 'delete_document', document)).toEqual({ deleted: true });
  const kept = [{ doc_id: docId, text: 'Honey bees dance.', metadata: { kind: [docId, 'insect'] } }];
  await call(client, 'upsert_documents', { index: index.id, documents: kept });
  const matching = { index: index.id, where: { kind: { contains_all: [docId, 'insect'] } } };
  const dry = await call(client, 'delete_documents', { ...matching, dry_run: true });
  expect(dry).toEqual({ deleted: 0, more: false, matching: 1 });
  expect(await call(client, 'delete_documents', matching)).toEqual({ deleted: 1, more: false });
  expect((await call(client, 'delete_documents', { index: index.id, where: {} })).refused).toMatch(
    /delete the index/,
  );
}

/** `send` calls a tool with arguments as JSON text, and resolves to the text of the answer. */
async function expectNothingLost(send: (name: string, given: string) => Promise<string>): Promise<void> {
  const document = `"index":"${index.id}","doc_id":"digits"`;
  const metadata = '{"n":12345678901234567891,"x":0.12345678901234567891}';
  const documents = `[{"doc_id":"digits","text":"bees","metadata":${metadata}}]`;
  await send('upsert_documents', `{"index":"${index.id}","documents":${documents}}`);
  expect(await send('get_document', `{${document}}`)).toContain(`"metadata":${metadata}`);
  const merge = '{"x":1.10,"n":null}';
  expect(await send('update_metadata', `{${document},"metadata_merge":${merge}}`)).not.toContain('isError');
  expect(await send('delete_document', `{${document}}`)).toContain('"deleted":true');
  // One of the two values would be lost.
  const twice = `{${document},"metadata_merge":{"a":1,"a":2}}`;
  expect(await send('update_metadata', twice)).toContain('params.arguments.metadata_merge.a occurs twice');
}

describe('over stdio', () => {
  it('an agent searches, reads, and gets the errors of the service', async () => {
    const client = await overStdio(stage.tenant.key);
    await readAll(client);
    await refusedByService(client);
    expect((await call(client, 'delete_document', { index: index.id, doc_id: 'x' })).refused).toMatch(
      /there is no tool "delete_document"/,
    );
  });

  it('--write offers tools that change documents, which the service refuses for a key that may only read', async () => {
    const client = await overStdio(stage.tenant.key, '--write');
    expect(await toolsOf(client)).toEqual(
      [...reading, 'delete_document', 'delete_documents', 'update_metadata', 'upsert_documents'].toSorted(),
    );
    await refusesUnknownArguments(client);
    await readsArgumentsAsMeant(client);
    await writeAll(client, 'over stdio');
    const reader = await overStdio(readOnlyKey, '--write');
    const refused = await call(reader, 'delete_document', { index: index.id, doc_id: passages[0]!.subject });
    expect(refused.refused).toMatch(/403 permission_denied: this API key may only read/);
  });

  it('schemas have no keyword that a host may refuse, and nothing is promised that never comes', async () => {
    const client = await overStdio(stage.tenant.key, '--write');
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    const { tools } = await client.listTools();
    const plain = /^(type|properties|required|items|description|additionalProperties|min|max)/;
    const keywordsOf = (schema: object): readonly string[] =>
      Object.entries(schema).flatMap(([keyword, value]) => {
        if (keyword === 'properties')
          return Object.values(value as Record<string, object>).flatMap(keywordsOf);
        return [keyword, ...(keyword === 'items' ? keywordsOf(value as object) : [])];
      });
    for (const { name, inputSchema, outputSchema } of tools) {
      expect(outputSchema, name).toMatchObject({ type: 'object' });
      for (const keyword of [...keywordsOf(inputSchema), ...keywordsOf(outputSchema!)])
        expect(keyword, name).toMatch(plain);
    }
  });

  it('numbers keep their digits, and a name that occurs twice is refused', async () => {
    const { process: child, finished } = start(['mcp', '--url', stage.server.url, '--write'], {
      environment: { MAXSIMD_API_KEY: stage.tenant.key },
      input: '',
      inputStaysOpen: true,
    });
    const answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const ask = async (method: string, params: string): Promise<string> => {
      child.stdin!.write(`{"jsonrpc":"2.0","id":7,"method":"${method}","params":${params}}\n`);
      const answer = String((await answers.next()).value);
      expect(answer).toContain('"id":7');
      return answer;
    };
    const person =
      '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}';
    expect(await ask('initialize', person)).toContain('"serverInfo"');
    for (const given of ['', ',"arguments":null', ',"arguments":"{}"', ',"arguments":{}'])
      expect(await ask('tools/call', `{"name":"list_indexes"${given}}`)).toContain('"indexes":[{');
    expect(await ask('tools/list', '{"cursor":null}')).toContain('"name":"search"');
    expect(await ask('tools/call', '{"name":7}')).toContain('"code":-32602');
    expect(await ask('resources/list', '{}')).toContain('"code":-32601');
    // Nothing is answered to what is no message, and the next one is.
    child.stdin!.write('no JSON\n');
    await expectNothingLost((name, given) => ask('tools/call', `{"name":"${name}","arguments":${given}}`));
    child.stdin!.end();
    expect(await finished).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('the process ends when its client has gone', async () => {
    const { process: child, finished } = start(['mcp'], {
      environment: { MAXSIMD_API_KEY: 'k' },
      input: '',
      inputStaysOpen: true,
    });
    child.stdin!.end();
    expect(await finished).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('starts as the guide registers it', async () => {
    const guide = readFileSync(path.join(repositoryRoot, 'docs/guide/agents.md'), 'utf8');
    const [, registration = ''] = /^```json\n([\s\S]*?)^```$/m.exec(guide) ?? [];
    const { command, args, env } = JSON.parse(registration).mcpServers.maxsimd;
    expect([command, args[0], Object.keys(env)]).toEqual([
      'npx',
      'maxsimd',
      ['MAXSIMD_URL', 'MAXSIMD_API_KEY'],
    ]);
    const client = await connected(
      new StdioClientTransport({
        command: process.execPath,
        args: ['src/cli/main.ts', ...args.slice(1)],
        env: { MAXSIMD_URL: stage.server.url, MAXSIMD_API_KEY: readOnlyKey },
      }),
    );
    expect((await call(client, 'list_indexes')).indexes).not.toEqual([]);
  });

  it('a key is needed', async () => {
    const { exitCode, stderr } = await runHere(['mcp']);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('an API key is needed')]);
  });
});

describe('over HTTP', () => {
  it('each caller searches with a key of its own', async () => {
    const address = await served();
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const client = await overHttp(address, stage.tenant.key);
    await readAll(client);
    await refusedByService(client);
    const other = await overHttp(address, (await stage.newTenant()).key);
    expect(await call(other, 'list_indexes')).toEqual({ indexes: [] });
    await expect(overHttp(address, 'qkv_live_wrong')).rejects.toThrow(/401.*authentication_failed/);
  });

  it('--write is for keys that may write', async () => {
    const address = await served('--write');
    await writeAll(await overHttp(address, stage.tenant.key), 'over HTTP');
    const documents = [{ doc_id: 'a', text: 'bees' }];
    const refused = await call(await overHttp(address, readOnlyKey), 'upsert_documents', {
      index: index.id,
      documents,
    });
    expect(refused.refused).toMatch(/403 permission_denied/);
  });

  it('a request without a key, of a foreign origin, or to another address is refused', async () => {
    const address = await served();
    const send = async (headers: Readonly<Record<string, string>>, to = address, method = 'POST') => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      const own = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const response = await fetch(to, { method, headers: { ...own, ...headers }, body });
      return [response.status, ((await response.json()) as { error?: { message: string } }).error?.message];
    };
    const authorization = `Bearer ${stage.tenant.key}`;
    expect(await send({ authorization })).toEqual([200, undefined]);
    expect(await send({ authorization, origin })).toEqual([200, undefined]);
    expect(await send({})).toEqual([401, expect.stringContaining('API key')]);
    expect(await send({ authorization, origin: 'http://evil.example.com' })).toEqual([
      403,
      expect.stringContaining('http://evil.example.com'),
    ]);
    for (const other of [`${address}/other`, `${new URL(address).origin}//`])
      expect(await send({ authorization }, other)).toEqual([404, 'the address is /mcp']);
    // Answers are JSON alone.
    expect(await send({ authorization, accept: 'application/json' })).toEqual([200, undefined]);
    expect(await send({ authorization }, address, 'DELETE')).toEqual([405, 'the method is POST']);
  });

  it('a web page of an allowed origin may call', async () => {
    const address = await served();
    const preflight = await fetch(address, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type, mcp-protocol-version',
      },
    });
    expect(preflight.status).toBe(204);
    const allowed = Object.fromEntries(preflight.headers);
    expect(allowed).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
    });
    // Refusals, too, or the page cannot read them.
    const refused = await fetch(address, { method: 'POST', headers: { origin } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, origin]);
    const foreign = await fetch(address, {
      method: 'OPTIONS',
      headers: { origin: 'http://evil.example.com' },
    });
    expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([403, null]);
  });

  it('numbers of metadata keep every digit', async () => {
    const address = await served('--write');
    const send = async (name: string, given: string) => {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${given}}}`;
      const headers = { authorization: `Bearer ${stage.tenant.key}`, 'content-type': 'application/json' };
      return (await fetch(address, { method: 'POST', headers, body })).text();
    };
    await expectNothingLost(send);
  });

  it('a body is read only for a key that the service knows, and up to 4 MiB', async () => {
    const address = await served('--write');
    const bytes = 4 * 1024 * 1024;
    const ask = (key: string, length: number) =>
      [
        'POST /mcp HTTP/1.1',
        'host: x',
        `authorization: Bearer ${key}`,
        'content-type: application/json',
        `content-length: ${length}`,
        'expect: 100-continue',
        '',
        '',
      ].join('\r\n');
    const { port } = new URL(address);
    expect(await exchange(Number(port), ask('qkv_live_wrong', bytes))).toMatch(/^HTTP\/1\.1 401 /);
    expect(await exchange(Number(port), ask(stage.tenant.key, bytes + 1))).toMatch(/^HTTP\/1\.1 413 /);
    const headers = { authorization: `Bearer ${stage.tenant.key}`, 'content-type': 'application/json' };
    const send = async (body: string) => (await fetch(address, { method: 'POST', headers, body })).status;
    const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(await send(list.padEnd(bytes))).toBe(200);
    expect(await send(list.slice(1))).toBe(400);
  });

  it('silent connections keep no caller out', async () => {
    const address = await served();
    const port = Number(new URL(address).port);
    const silent: Socket[] = [];
    onTestFinished(() => silent.forEach((socket) => socket.destroy()));
    for (let n = 0; n < 300; n += 1)
      silent.push(await open(port, n % 2 === 0 ? '' : 'POST /mcp HTTP/1.1\r\n'));
    const client = await overHttp(address, stage.tenant.key);
    expect(await toolsOf(client)).toEqual(reading);
    await expect.poll(() => silent.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(0);
    // A header has 3 s.
    const late = await exchange(port, 'POST /mcp HTTP/1.1\r\n');
    expect(late).toMatch(/^HTTP\/1\.1 408 /);
    expect(await toolsOf(client)).toEqual(reading);
  });

  it('no answer names the address of the service', async () => {
    const address = await served('--url', 'http://127.0.0.1:1');
    const headers = { authorization: `Bearer ${stage.tenant.key}`, 'content-type': 'application/json' };
    const response = await fetch(address, { method: 'POST', headers, body: '{}' });
    const text = await response.text();
    expect([response.status, text]).toEqual([503, expect.stringContaining('the service cannot be reached')]);
    expect(text).not.toMatch(/127\.0|:1\b/);
  });

  it('--key has no place', async () => {
    const { exitCode, stderr } = await runHere(['mcp', '--http', '0', '--key', 'k']);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('each caller sends a key')]);
  });
});
