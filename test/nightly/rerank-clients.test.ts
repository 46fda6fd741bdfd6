/** Clients of other re-rank services, as the guide names them, against this one: 1 GB of packages of PyPI and npm. */
import { execFile } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { missingPython, nodeTools, pythonEnvironment } from '../../clients/tools/install.ts';
import { repositoryRoot } from '../support/running/launch.ts';
import { expectReply } from '../support/running/client.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { passages } from '../support/running/texts.ts';
import { ranked } from '../support/running/wire.ts';

const stage = useSharedStage();
const packages = path.join(import.meta.dirname, 'rerank-clients');
const noPython = missingPython();
const query = passages[3]!.question;
/** The last one cannot be ranked. */
const texts = [...passages.slice(0, 5).map(({ text }) => text), ''];
type Pairs = readonly (readonly [index: number, score: number])[];
/** By MaxSim, and by `normalized_score`. */
let expected: Pairs;
let normalized: Pairs;
/** The programs that run clients, by the environment in which these are installed. */
const programs = new Map<string, readonly string[]>();

/** A client, its environment, and the path of the address that it is given. */
const clients = [
  ['cohere ClientV2', 'cohere-7', ''],
  ['cohere Client', 'cohere-7', ''],
  ['litellm cohere/', 'cohere-7', ''],
  ['litellm jina_ai/', 'cohere-7', ''],
  ['litellm hosted_vllm/', 'cohere-7', ''],
  ['litellm infinity/', 'cohere-7', ''],
  ['rerankers cohere', 'cohere-7', '/v1/rerank'],
  ['rerankers jina', 'cohere-7', '/v1/rerank'],
  ['rerankers text-embeddings-inference', 'cohere-7', '/rerank'],
  ['Haystack CohereRanker', 'cohere-7', ''],
  ['Haystack JinaRanker', 'cohere-7', '/v1/rerank'],
  ['LlamaIndex CohereRerank', 'cohere-5', ''],
  ['LlamaIndex JinaRerank', 'cohere-7', '/v1'],
  ['LangChain CohereRerank', 'cohere-5', ''],
  ['cohere-ai CohereClientV2', 'npm', ''],
  ['LangChain.js CohereRerank', 'npm', ''],
  ['AI SDK rerank', 'npm', '/v2'],
] as const;

beforeAll(async () => {
  const documents = texts.slice(0, -1).map((text, at) => ({ doc_id: String(at), text }));
  const { results } = expectReply(await stage.client.score({ query, documents }), ranked);
  expected = [...results.map(({ doc_id, score }) => [Number(doc_id), score] as const), [5, 0]];
  normalized = [
    ...results.map(({ doc_id, normalized_score: share }) => [Number(doc_id), share] as const),
    [5, 0],
  ];
  const folder = path.resolve(await nodeTools('rerank-clients', packages), '../..');
  cpSync(path.join(packages, 'clients.mjs'), path.join(folder, 'clients.mjs'));
  programs.set('npm', [process.execPath, path.join(folder, 'clients.mjs')]);
  for (const name of noPython === undefined ? ['cohere-5', 'cohere-7'] : []) {
    const binaries = await pythonEnvironment(`rerank-${name}`, path.join(packages, `${name}.txt`));
    programs.set(name, [path.join(binaries, 'python'), path.join(packages, 'clients.py')]);
  }
}, 3_600_000);

test.for(clients)('%s ranks as the service does', async ([client, environment, address], { skip }) => {
  skip(environment !== 'npm' && noPython !== undefined, noPython);
  const [program = '', script = ''] = programs.get(environment)!;
  const ran = promisify(execFile)(program, [script, client, `${stage.server.url}${address}`], {
    env: { ...process.env, MAXSIMD_API_KEY: stage.tenant.key, PYTHONDONTWRITEBYTECODE: '1' },
  });
  ran.child.stdin?.end(JSON.stringify({ query, texts }));
  const isNormalized = client.endsWith('text-embeddings-inference');
  expect(JSON.parse((await ran).stdout)).toEqual(isNormalized ? normalized : expected);
});

test('the guide names the clients that are run here with their addresses, and no others', () => {
  const guide = readFileSync(path.join(repositoryRoot, 'docs/guide/clients.md'), 'utf8');
  const row = /^\| `([^`]+)` \|[^|]*\| (?:`([^`]+)` )?\| [\w@/-]+ \d[\d.]* \|$/gm;
  const rows = [...guide.matchAll(row)].map(([, name, address = '']) => [name, address]);
  expect(rows).toEqual(clients.map(([name, , address]) => [name, address]));
});
