/**
 * Distinctive strings go in as queries, document texts, filters, bodies of broken requests and keys. None
 * of them may come out in a file of the server, a log line, a metric or a trace: not in the data directory (write-ahead
 * logs included), not in its temporary directory, in no common encoding.
 */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { call, connect, type Client } from '../support/running/client.ts';
import { createTenant } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { encodersOf } from '../support/running/processes.ts';
import { createRandom } from '../support/running/random.ts';
import { startTraceCollector, type TraceCollector } from '../support/network/trace-collector.ts';
import { openRaw } from '../support/network/raw-http.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { recombine } from '../support/running/texts.ts';

/** A word that exists nowhere else; lower case, as the model's tokenizer would leave it. */
function canaryOf(name: string): string {
  const letters = Array.from({ length: 14 }, () => String.fromCodePoint(97 + Math.floor(Math.random() * 26)));
  return `${name}zq${letters.join('')}`;
}

/** The forms in which a text might end up in a file. Lower case: the search ignores case, base64 excepted. */
function formsOf(canary: string): readonly { readonly form: string; readonly bytes: Buffer }[] {
  const forms = [
    { form: 'utf-8', bytes: Buffer.from(canary) },
    { form: 'utf-16', bytes: Buffer.from(canary, 'utf16le') },
    { form: 'hex', bytes: Buffer.from(Buffer.from(canary).toString('hex')) },
    { form: 'reversed', bytes: Buffer.from(Array.from(canary).toReversed().join('')) },
  ];
  // Base64 has three alignments; the ends depend on the neighbours and are left out.
  for (let offset = 0; offset < 3; offset += 1) {
    const encoded = Buffer.from('x'.repeat(offset) + canary).toString('base64');
    const certain = encoded.slice(offset === 0 ? 0 : 4, -4);
    forms.push({ form: `base64 at ${offset}`, bytes: Buffer.from(certain) });
  }
  return forms;
}

function findCanaries(canaries: ReadonlyMap<string, string>, content: Buffer): readonly string[] {
  const lowered = Buffer.from(content.toString('latin1').toLowerCase(), 'latin1');
  return [...canaries].flatMap(([name, canary]) =>
    formsOf(canary)
      .filter(
        ({ bytes }) =>
          content.includes(bytes) ||
          lowered.includes(Buffer.from(bytes.toString('latin1').toLowerCase(), 'latin1')),
      )
      .map(({ form }) => `${name} as ${form}`),
  );
}

async function filesUnder(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

async function findInFiles(
  canaries: ReadonlyMap<string, string>,
  directory: string,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const file of await filesUnder(directory)) {
    found.push(
      ...findCanaries(canaries, await readFile(file)).map(
        (what) => `${what} in ${path.relative(directory, file)}`,
      ),
    );
  }
  return found;
}

describe('Canary', () => {
  let server: ServerProcess;
  let collector: TraceCollector;
  let tenant: TestTenant;
  /** Texts that must not appear anywhere, by their names. */
  const secrets = new Map<string, string>();
  /** Texts that the contract lets the service store. Finding them proves that the search for secrets works. */
  const stored = new Map<string, string>();

  function secret(name: string): string {
    const canary = canaryOf(name.replaceAll(/[^a-z]/g, ''));
    secrets.set(name, canary);
    return canary;
  }

  beforeAll(async () => {
    collector = await startTraceCollector();
    server = await startServer({
      metrics: true,
      env: { MAXSIMD_LOG_LEVEL: 'trace', MAXSIMD_TRACES_URL: collector.url },
    });
    tenant = await createTenant(server);
    secrets.set('key secret', tenant.key.slice(-30));
    await speak(server, tenant.client);
  });

  afterAll(async () => {
    await server?.kill();
    await server?.scratch.remove();
    await collector?.[Symbol.asyncDispose]();
  });

  /** Says every secret in every place where a client may say something. */
  async function speak(running: ServerProcess, client: Client): Promise<void> {
    const random = createRandom(9);
    const around = (canary: string): string => `${recombine(random, 30)} ${canary} ${recombine(random, 30)}`;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 32, overlap_tokens: 4, minimum_chunk_tokens: 4 },
    });
    const metadata = canaryOf('metadata');
    stored.set('metadata', metadata);
    await put(client, id, [
      { doc_id: 'a', text: around(secret('document text')), metadata: { said: metadata } },
      { doc_id: 'b', text: around(secret('replaced text')) },
      { doc_id: 'c', text: around(secret('deleted text')) },
    ]);
    await put(client, id, [{ doc_id: 'b', text: around(secret('replacing text')) }]);
    await client.deleteDocument(id, 'c');
    await client.upsert(id, [
      { doc_id: 'd', text: around(secret('text beside a failure')) },
      { doc_id: 'e', text: ' ' },
    ]);
    const query = secret('query');
    for (const body of [
      { query },
      { query, return_components: true },
      { query: around(query), filter: { said: secret('filter value') } },
    ]) {
      expect((await client.search(id, body)).status).toBe(200);
    }
    const scored = await client.score({
      query: secret('score query'),
      documents: [
        { doc_id: 'a', text: around(secret('score text')), metadata: { said: secret('score metadata') } },
      ],
      return_components: true,
    });
    expect(scored.status).toBe(200);
    await speakBrokenly(running, client, id);
  }

  async function speakBrokenly(running: ServerProcess, client: Client, id: string): Promise<void> {
    const documents = `/v1/indexes/${id}/documents`;
    const refusals = [
      await client.send('POST', documents, {
        rawBody: `{"documents":[{"doc_id":"x","text":"${secret('truncated body')}`,
      }),
      await client.send('POST', documents, { rawBody: secret('bare body') }),
      await client.send('POST', documents, {
        body: { documents: [{ doc_id: 'x', text: secret('bad batch text'), metadata: 7 }] },
      }),
      await client.send('POST', documents, {
        body: { documents: [{ doc_id: 'x', text: 'y', [secret('unknown property')]: 1 }] },
      }),
      await client.send('POST', documents, {
        body: { documents: [{ doc_id: 7, text: [secret('text of a wrong type')] }] },
      }),
      await client.send('POST', documents, {
        rawBody: `${secret('oversize body')}${' '.repeat(5 * 1024 * 1024)}`,
      }),
      await client.send('POST', documents, {
        rawBody: secret('plain text body'),
        headers: { 'content-type': 'text/plain' },
      }),
      await client.search(id, { query: `${secret('long query')} `.repeat(600) }),
      await client.search(id, { query: secret('query beside an error'), top_k: 0 }),
      await client.search(id, { query: 'x', top_k: secret('number of a wrong type') }),
      await client.search('00000000-0000-4000-8000-000000000000', { query: secret('query of no index') }),
      await client.score({ query: secret('score query without documents') }),
      await client.send('POST', '/v1/nowhere', { body: { query: secret('query to nowhere') } }),
      await call(`${running.url}/v1/score`, {
        rawBody: JSON.stringify({ query: secret('query without a key') }),
      }),
      await connect(running.url, `qkv_live_${secret('wrong key')}`).usage(),
      await call(`${running.url}/v1/usage?api_key=${secret('key in the address')}`),
      await call(`${running.url}/v1/usage`, {
        headers: { authorization: `Basic ${secret('basic credentials')}` },
      }),
    ];
    for (const reply of refusals) expect(reply.status).toBeGreaterThanOrEqual(400);
    const raw = await openRaw(running.url);
    raw.write(`${secret('not http')}\r\n\r\n`);
    expect((await raw.reply()).status).toBe(400);
    // A client that leaves in the middle of its body, and an encoder that dies with a text in hand.
    const leaving = await openRaw(running.url);
    leaving.write(
      `POST /v1/score HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${client.key}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"query":"${secret('half a body')}`,
    );
    leaving.cut();
    const dying = client.score({
      query: secret('query of a dying encoder'),
      documents: [{ doc_id: 'a', text: secret('text of a dying encoder') }],
    });
    for (const { pid } of await encodersOf(running.pid)) process.kill(pid, 'SIGKILL');
    expect([200, 503]).toContain((await dying).status);
  }

  test('the search for canaries finds what is stored by contract', async () => {
    expect(await findInFiles(stored, server.scratch.data)).not.toEqual([]);
    expect(
      findCanaries(
        new Map([['x', 'abcdefghijklmnop']]),
        Buffer.from(Buffer.from('..abcdefghijklmnop..').toString('base64')),
      ),
    ).not.toEqual([]);
  });

  test('no text, query or key stands in a file of the running server', async () => {
    expect(await findInFiles(secrets, server.scratch.data)).toEqual([]);
    expect(await findInFiles(secrets, server.scratch.temporary)).toEqual([]);
  });

  test('no text, query or key stands in a metric, and no metadata either', async () => {
    const { text } = await call(server.metricsUrl ?? '');
    expect(text.length).toBeGreaterThan(100);
    expect(findCanaries(new Map([...secrets, ...stored]), Buffer.from(text))).toEqual([]);
  });

  test('no text, query or key stands in a log line, and no metadata either', () => {
    const { stdout, stderr } = server.output();
    expect(stderr.split('\n').length).toBeGreaterThan(20);
    expect(findCanaries(new Map([...secrets, ...stored]), Buffer.from(stdout + stderr))).toEqual([]);
  });

  test('nor in a trace, nor after the server has ended, by SIGTERM or by SIGKILL', async () => {
    await server.stop();
    const all = new Map([...secrets, ...stored]);
    // Its last spans are out.
    expect(collector.spans().length).toBeGreaterThan(100);
    expect(findCanaries(all, collector.received())).toEqual([]);
    expect(findCanaries(all, Buffer.from(server.output().stdout + server.output().stderr))).toEqual([]);
    for (const directory of [server.scratch.data, server.scratch.temporary]) {
      expect(await findInFiles(secrets, directory)).toEqual([]);
    }
    const again = await startServer({ scratch: server.scratch, env: { MAXSIMD_LOG_LEVEL: 'trace' } });
    await speak(again, connect(again.url, tenant.key));
    await again.kill();
    expect(
      findCanaries(
        new Map([...secrets, ...stored]),
        Buffer.from(again.output().stdout + again.output().stderr),
      ),
    ).toEqual([]);
    for (const directory of [server.scratch.data, server.scratch.temporary]) {
      expect(await findInFiles(secrets, directory)).toEqual([]);
    }
  });
});
