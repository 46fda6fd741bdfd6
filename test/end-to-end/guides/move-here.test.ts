/** Runs the commands of docs/guide/move-here.md as they stand there, against stand-ins that answer as the other services do. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installMissingTools } from '../../../deploy/local/debian-packages.ts';
import { parseJson } from '../../../src/cli/json.ts';
import { expectReply } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import type { TestTenant } from '../../support/commands/operators.ts';
import { entryPoint, makeScratch, repositoryRoot } from '../../support/running/launch.ts';
import { startServer } from '../../support/running/server.ts';
import { find } from '../../support/running/requests.ts';
import { indexList } from '../../support/running/wire.ts';

const articles = [
  ['7', 'Honey bees dance to tell each other where flowers are.', { year: 1967 }],
  [
    'whale & calf',
    'The blue whale is the largest animal known to have existed.',
    { year: 1950, "it's": 'odd "name"' },
  ],
  // A double has another number.
  ['9007199254740993', 'Bridges of steel carry trains over wide rivers.', {}],
] as const;

const scratch = await makeScratch();
let tenant: TestTenant;

beforeAll(async () => {
  const failure = installMissingTools({ jq: 'jq', curl: 'curl' });
  if (failure !== undefined) throw new Error(`jq and curl cannot be installed: ${failure}`);
  tenant = await createTenant(await startServer({ scratch, sharedEncoder: true }));
});
afterAll(async () => scratch.remove());

/** A stand-in that answers each request with JSON, or with 404 where there is no answer, and wants its key in a header. */
async function standIn(
  keyHeader: string | undefined,
  answer: (url: URL, body: Readonly<Record<string, unknown>>) => unknown,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const key = keyHeader === undefined ? 'secret' : request.headers[keyHeader];
    const found =
      key === 'secret' || key === 'ApiKey secret'
        ? answer(new URL(request.url ?? '', 'http://x'), parseJson(body || '{}') as Record<string, unknown>)
        : undefined;
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Runs the block under a heading with the addresses and keys of here. */
async function runBlock(heading: string, replacements: Readonly<Record<string, string>>): Promise<string> {
  const guide = await readFile(path.join(repositoryRoot, 'docs/guide/move-here.md'), 'utf8');
  let script = new RegExp(`## ${heading}[\\s\\S]*?\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? '';
  for (const [of, by] of Object.entries({
    ...replacements,
    'npm run maxsimd --': `"${process.execPath}" "${entryPoint}"`,
  })) {
    expect(script).toContain(of);
    script = script.replaceAll(of, by);
  }
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: scratch.root,
    env: { ...process.env, MAXSIMD_URL: tenant.client.url, MAXSIMD_API_KEY: tenant.key },
  });
  return stdout;
}

/** Everything has come over, with the metadata that the other service had. */
async function expectMoved(
  name: string,
  expected: Readonly<Record<string, object>> = Object.fromEntries(
    articles.map(([id, , metadata]) => [id, metadata]),
  ),
): Promise<void> {
  const { data } = expectReply(await tenant.client.listIndexes(), indexList);
  const index = data.find((candidate) => candidate.name === name);
  const { results } = await find(tenant.client, index?.id ?? '', { query: 'how do bees talk', top_k: 10 });
  expect(results[0]?.doc_id).toBe('7');
  expect(Object.fromEntries(results.map(({ doc_id: id, metadata }) => [id, metadata]))).toEqual(expected);
}

test('points of Qdrant come over, page by page', async () => {
  const points = articles.map(([id, body, fields]) => ({
    id: /^\d+$/.test(id) ? parseJson(id) : id,
    payload: { body, ...fields },
    vector: null,
  }));
  await using qdrant = await standIn(
    'api-key',
    (url, { offset, with_payload: payload, with_vector: vector }) => {
      if (url.pathname !== '/collections/articles/points/scroll' || payload !== true || vector !== false)
        return undefined;
      const first = points.findIndex(
        ({ id }) => JSON.stringify(id) === JSON.stringify(offset ?? points[0]?.id),
      );
      return {
        status: 'ok',
        result: { points: points.slice(first, first + 2), next_page_offset: points[first + 2]?.id ?? null },
      };
    },
  );
  const printed = await runBlock('From Qdrant', {
    'http://127.0.0.1:6333': qdrant.url,
    'QDRANT_API_KEY=…': 'QDRANT_API_KEY=secret',
  });
  expect(printed).toContain('7');
  await expectMoved('articles');
  // An export that fails imports nothing.
  const refused = runBlock('From Qdrant', {
    'http://127.0.0.1:6333': qdrant.url,
    'QDRANT_API_KEY=…': 'QDRANT_API_KEY=wrong',
    '--index articles': '--index nothing',
  });
  await expect(refused).rejects.toThrow('404');
});

test('records of Pinecone come over, page by page', async () => {
  await using pinecone = await standIn('api-key', (url) => {
    if (url.searchParams.get('namespace') !== '__default__') return undefined;
    if (url.pathname === '/vectors/list') {
      const first = Number(url.searchParams.get('paginationToken') ?? 0);
      const vectors = articles.slice(first, first + 2).map(([id]) => ({ id }));
      return { vectors, ...(first === 0 ? { pagination: { next: '2' } } : {}), namespace: '__default__' };
    }
    const wanted = url.searchParams.getAll('ids');
    const found = articles.filter(([id]) => wanted.includes(id));
    return {
      vectors: Object.fromEntries(
        found.map(([id, text, metadata]) => [id, { id, values: [], metadata: { text, ...metadata } }]),
      ),
    };
  });
  await runBlock('From Pinecone', {
    'https://articles-abc123.svc.pinecone.io': pinecone.url,
    'PINECONE_API_KEY=…': 'PINECONE_API_KEY=secret',
  });
  await expectMoved('papers');
});

test('documents of Elasticsearch come over, page by page', async () => {
  const hits = articles.map(([id, body, fields], place) => ({
    _id: id,
    _source: { body, ...fields },
    sort: [place],
  }));
  const pit = { id: 'a point in time', keep_alive: '5m' };
  await using elastic = await standIn('authorization', (url, asked) => {
    if (url.pathname === '/posts/_pit') return { id: pit.id };
    if (url.pathname !== '/_search' || JSON.stringify(asked['pit']) !== JSON.stringify(pit)) return undefined;
    const [last = -1] = (asked['search_after'] ?? []) as readonly number[];
    return { hits: { hits: hits.slice(last + 1, last + 3) } };
  });
  await runBlock('From Elasticsearch', {
    'http://127.0.0.1:9200': elastic.url,
    'ELASTIC_API_KEY=…': 'ELASTIC_API_KEY=secret',
  });
  await expectMoved('posts');
});

test('documents of Vespa come over, page by page', async () => {
  await using vespa = await standIn(undefined, (url) => {
    if (url.pathname !== '/document/v1/default/doc/docid') return undefined;
    const first = Number(url.searchParams.get('continuation') ?? 0);
    const documents = articles
      .slice(first, first + 2)
      .map(([id, body, fields]) => ({ id: `id:default:doc::${id}`, fields: { body, ...fields } }));
    return { documents, ...(first === 0 ? { continuation: '2' } : {}) };
  });
  await runBlock('From Vespa', { 'http://vespa:8080': vespa.url });
  await expectMoved('docs');
});

test('passages of a ColBERT library come over', async () => {
  const lines = articles.map(([id, text]) => `${id}\t${text}\n`);
  await writeFile(path.join(scratch.root, 'collection.tsv'), lines.join(''));
  await runBlock('From PLAID', { 'collection.tsv': 'collection.tsv' });
  await expectMoved('passages', Object.fromEntries(articles.map(([id]) => [id, {}])));
});
