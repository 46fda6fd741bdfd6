/**
 * `npm run bench -- cold`: how long a node that has nothing takes to its first answer. PostgreSQL, an object store, Redis and an
 * encoder run on this machine; each round starts a node with an empty folder and searches at once. With `--against` nodes of
 * another checkout take turns with it. The index is of text, or of `--token-vectors` made ones.
 */
import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { startCluster, startNode } from '../../deploy/local/cluster.ts';
import { generateApiKey, hashApiKey } from '../../src/catalog/api-key.ts';
import { openPostgresCatalog } from '../../src/catalog/postgres/open-catalog.ts';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import type { NamedSegment } from '../../src/index-state.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { scratchFolder } from '../lib/endings.ts';
import { describeEnvironment } from '../lib/environment.ts';
import { beir, integer, optional } from '../lib/options.ts';
import { median, quantile } from '../lib/statistics.ts';
import { readTexts } from '../lib/texts.ts';
import { rounded } from '../cluster/target.ts';
import { fillIndex } from './made-index.ts';

const settings = {
  beir,
  documents: integer(300, 'documents of text'),
  tokenVectors: integer(0, 'token vectors that are made instead of text', 0),
  rounds: integer(3, 'cold nodes of each checkout'),
  searches: integer(50, 'searches after the first one, and once all is there'),
  against: optional('checkout', 'folder of another checkout, built and installed, to compare with'),
};
type Options = OptionsOf<typeof settings>;

interface ColdReport {
  readonly environment: object;
  readonly index: { readonly segments: number; readonly rows_mib: number; readonly derived_mib: number };
  readonly sides: readonly SideReport[];
}

/** Milliseconds. */
interface SideReport {
  readonly name: string;
  /** From the request to the answer, one a round. */
  readonly first_ms: readonly number[];
  readonly next_p50_ms: number;
  readonly next_p99_ms: number;
  /** From the first request until all of the index is there, one a round. */
  readonly whole_ms: readonly number[];
  readonly warm_p50_ms: number;
}

interface Round {
  readonly firstMs: number;
  readonly nextMs: readonly number[];
  readonly wholeMs: number;
  readonly warmMs: readonly number[];
}

interface Side {
  readonly name: string;
  readonly start: typeof startNode;
  readonly rounds: Round[];
}

interface Caller {
  readonly url: string;
  readonly apiKey: string;
}

export const cold = benchmark({
  name: 'cold',
  summary: 'from the start of a node that has nothing to its first answer',
  settings,
  run,
  render: (report: ColdReport) => `${JSON.stringify({ ...report, environment: undefined }, null, 2)}\n`,
});

/** An index that does not change for so long has been merged. */
const calmMs = 5_000;
const pollMs = 20;
const batch = 20;

async function run(options: Options): Promise<ColdReport> {
  using folder = scratchFolder('cold');
  const under = (name: string): string => path.join(folder.path, name);
  const cluster = await startCluster({ directory: folder.path, nodes: 1, balance: 'turns' });
  try {
    Object.assign(process.env, cluster.environment);
    const { MAXSIMD_CATALOG_URL: url = '', MAXSIMD_KEY_PEPPER_FILE: pepperFile = '' } = cluster.environment;
    const keyPepper = await readFile(pepperFile);
    const catalog = await openPostgresCatalog({ url, keyPepper });
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error('there is a node');
    const { id: keyId, apiKey } = generateApiKey();
    const limits = {
      requestsPerMinute: 1_000_000,
      maxConcurrentRequests: 100,
      inputTokens: 2n ** 50n,
      documents: 2 ** 40,
    };
    const key = { id: keyId, hash: hashApiKey(apiKey, keyPepper) };
    const tenantId = randomUUID();
    await catalog.createTenant({ id: tenantId, name: 'cold', limits, key });
    const writer = { url: first.url, apiKey };
    const indexId = String((await call(writer, '/v1/indexes', { name: 'cold' }))['id']);
    const { documents, queries } = await readTexts(options.documents, options.beir);
    options.onProgress('storing');
    if (options.tokenVectors > 0) {
      const target = { tenantId, indexId, directory: under('made'), tokenVectors: options.tokenVectors };
      await fillIndex(cluster, catalog, target);
    } else await storeTexts(writer, indexId, documents);
    const segments = await whenCalm(catalog, indexId);
    await catalog.close();
    await first.stop();
    const sides: Side[] = [{ name: 'this', start: startNode, rounds: [] }];
    if (options.against !== undefined)
      sides.push({ name: 'against', start: await starterOf(options.against), rounds: [] });
    for (let round = 0; round < options.rounds; round += 1) {
      for (const { name, start, rounds } of round % 2 === 0 ? sides : sides.toReversed()) {
        const directory = under(`${name}-${round}`);
        const node = await start(directory, cluster.environment);
        try {
          const caller = { url: node.url, apiKey };
          rounds.push(await measure(caller, { indexId, directory, queries, searches: options.searches }));
        } finally {
          await node.stop();
          await rm(directory, { recursive: true });
        }
        options.onProgress(`${name}: ${Math.round(rounds.at(-1)!.firstMs)} ms`);
      }
    }
    return {
      environment: describeEnvironment(options.command, 'auto', []),
      index: {
        segments: segments.length,
        rows_mib: mebibytes(segments, (ending) => ending === ''),
        derived_mib: mebibytes(segments, (ending) => ending !== ''),
      },
      sides: sides.map(sideReport),
    };
  } finally {
    await cluster.stop();
  }
}

async function starterOf(checkout: string): Promise<typeof startNode> {
  const file = pathToFileURL(path.resolve(checkout, 'deploy/local/cluster.ts')).href;
  return ((await import(file)) as { readonly startNode: typeof startNode }).startNode;
}

async function storeTexts(writer: Caller, indexId: string, texts: readonly string[]): Promise<void> {
  for (let from = 0; from < texts.length; from += batch) {
    const documents = texts
      .slice(from, from + batch)
      .map((text, place) => ({ doc_id: `document ${from + place}`, text }));
    while (!(await answers(writer, `/v1/indexes/${indexId}/documents`, { documents })));
  }
}

/** Once nobody merges any more. */
async function whenCalm(catalog: ClusterCatalog, indexId: string): Promise<readonly NamedSegment[]> {
  let known = { layout: -1, sinceMs: performance.now() };
  for (;;) {
    const { layout = 0 } = (await catalog.readHead(indexId)) ?? {};
    if (layout !== known.layout) known = { layout, sinceMs: performance.now() };
    if (performance.now() - known.sinceMs > calmMs) break;
    await pause(pollMs);
  }
  const changes = await catalog.changesSince({ indexId, generation: -1, segmentIds: [] });
  if (typeof changes !== 'object') throw new Error('the index is gone');
  return changes.segments;
}

async function measure(
  caller: Caller,
  {
    indexId,
    directory,
    queries,
    searches,
  }: {
    readonly indexId: string;
    readonly directory: string;
    readonly queries: readonly string[];
    readonly searches: number;
  },
): Promise<Round> {
  let asked = 0;
  const search = async (): Promise<number> => {
    asked += 1;
    const startMs = performance.now();
    const query = queries[asked % queries.length];
    // A search that has no time left is asked again.
    while (!(await answers(caller, `/v1/indexes/${indexId}/search`, { query })));
    return performance.now() - startMs;
  };
  const some = async (): Promise<readonly number[]> => {
    const times: number[] = [];
    while (times.length < searches) times.push(await search());
    return times;
  };
  const startMs = performance.now();
  const firstMs = await search();
  const whole = whenWhole(path.join(directory, 'data/cache')).then(() => performance.now() - startMs);
  const nextMs = await some();
  return { firstMs, nextMs, wholeMs: await whole, warmMs: await some() };
}

/** When no file of a cache is on its way. */
async function whenWhole(cache: string): Promise<void> {
  for (;;) {
    const files = await readdir(cache, { recursive: true });
    if (!files.some((file) => file.includes('.part-'))) return;
    await pause(pollMs);
  }
}

function sideReport({ name, rounds }: Side): SideReport {
  const next = rounds.flatMap(({ nextMs }) => nextMs);
  return {
    name,
    first_ms: rounds.map(({ firstMs }) => Math.round(firstMs)),
    next_p50_ms: rounded(median(next)),
    next_p99_ms: rounded(quantile(next, 0.99)),
    whole_ms: rounds.map(({ wholeMs }) => Math.round(wholeMs)),
    warm_p50_ms: rounded(median(rounds.flatMap(({ warmMs }) => warmMs))),
  };
}

function mebibytes(segments: readonly NamedSegment[], counts: (ending: string) => boolean): number {
  const files = segments.flatMap((segment) => segment.files).filter(({ ending }) => counts(ending));
  return rounded(files.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20);
}

/** False where it is to be asked again. */
async function answers(caller: Caller, route: string, body: object): Promise<boolean> {
  const response = await post(caller, route, body);
  const text = await response.text();
  if (response.status === 503 || response.status === 429) return false;
  if (!response.ok) throw new Error(`${route}: ${response.status} ${text}`);
  return true;
}

async function call(caller: Caller, route: string, body: object): Promise<Record<string, unknown>> {
  const response = await post(caller, route, body);
  if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

function post({ url, apiKey }: Caller, route: string, body: object): Promise<Response> {
  return fetch(url + route, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}
