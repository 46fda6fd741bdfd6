/** Other tools accept the OpenAPI document: two check it, and three make clients from it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  generatePython,
  generateTypescript,
  generatedFiles,
  generatorsOfPython,
  makePython,
  writeDocument,
} from '../../clients/tools/generate.ts';
import { missingPython, nodeTools, run } from '../../clients/tools/install.ts';
import { startHttp } from '../support/http/http-server.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = path.join(root, 'build/clients/checked');
const document = path.join(folder, 'openapi.json');
const rewritten = '`node clients/tools/generate.ts` rewrites it';
const installMs = 300_000;
const noPython = missingPython();

const committed = (name: keyof typeof generatedFiles): string =>
  readFileSync(path.join(root, generatedFiles[name]), 'utf8');

beforeAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await writeDocument(document);
  await nodeTools();
}, installMs);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('redocly finds neither an error nor a warning', async () => {
  const environment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const options = ['lint', document, '--max-problems=10', '--format=json'];
  const report = await run(path.join(await nodeTools(), 'redocly'), options, folder, environment);
  expect(JSON.parse(report)).toMatchObject({ totals: { errors: 0, warnings: 0 } });
});

test('spectral finds neither an error nor a warning', async () => {
  const ruleset = path.join(root, 'clients/tools/spectral.yaml');
  const options = ['lint', document, '--ruleset', ruleset, '--fail-severity=warn'];
  expect(await run(path.join(await nodeTools(), 'spectral'), options, folder)).toContain('No results');
});

test('openapi-typescript reads the whole document', async () => {
  const made = path.join(folder, 'whole.ts');
  await run(path.join(await nodeTools(), 'openapi-typescript'), [document, '--output', made], folder);
  expect(readFileSync(made, 'utf8')).toContain('deleteDocument');
});

test('the types of the TypeScript client are those of the document', async () => {
  const made = path.join(folder, 'schema.ts');
  await generateTypescript(document, made);
  expect(committed('typescript'), rewritten).toBe(readFileSync(made, 'utf8'));
});

describe.skipIf(noPython !== undefined)(`Python${noPython === undefined ? '' : ` (${noPython})`}`, () => {
  beforeAll(async () => void (await generatorsOfPython()), installMs);

  test('the models of the Python client are those of the document', async () => {
    const made = path.join(folder, 'models.py');
    await generatePython(document, made);
    expect(committed('python'), rewritten).toBe(readFileSync(made, 'utf8'));
  });

  test('clients made by datamodel-codegen and openapi-python-client accept answers with added fields', async () => {
    const binaries = await generatorsOfPython();
    const made = path.join(folder, 'generated_client');
    const options = [
      'generate',
      '--path',
      document,
      '--output-path',
      made,
      '--meta=none',
      '--fail-on-warning',
    ];
    const environment = { PATH: `${binaries}:${process.env['PATH'] ?? ''}` };
    await run(path.join(binaries, 'openapi-python-client'), options, folder, environment);
    const answers = path.join(folder, 'answers.json');
    const given = (await answersOfEveryKind()).map(([name, body]) => [name, withAddedFields(body)]);
    writeFileSync(answers, JSON.stringify(given));
    const script = path.join(import.meta.dirname, 'accept_added_fields.py');
    await makePython(document, path.join(folder, 'models.py'));
    const read = await run(path.join(binaries, 'python'), [script, folder, answers], folder);
    expect(read.trim().split('\n')).toHaveLength(2 * given.length);
  });
});

/** Names of schemas, each with an answer of a running service. */
async function answersOfEveryKind(): Promise<readonly (readonly [string, unknown])[]> {
  await using http = await startHttp();
  const id = await http.createIndex();
  const get = async (url: string): Promise<unknown> => (await http.inject({ url })).json();
  const post = async (url: string, payload: object): Promise<unknown> =>
    (await http.inject({ method: 'POST', url, payload })).json();
  const documents = [{ doc_id: 'a', text: 't', metadata: { deep: { a: [1, null] } } }];
  const rerank = { model: 'default', query: 'q', documents: ['t'], return_documents: true };
  return [
    ['Index', await get(`/v1/indexes/${id}`)],
    ['IndexList', await get('/v1/indexes')],
    ['UsageSummary', await get('/v1/usage')],
    ['Health', await get('/healthz')],
    ['Readiness', await get('/readyz')],
    ['UpsertResult', await post(`/v1/indexes/${id}/documents`, { documents })],
    ['Ranked', await post(`/v1/indexes/${id}/search`, { query: 'q' })],
    ['Reranked', await post('/v2/rerank', rerank)],
    ['Error', await post('/v1/score', {})],
  ];
}

/** The contract may add a field to any object of an answer. */
function withAddedFields(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withAddedFields);
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).map(([key, value]) => [key, withAddedFields(value)]);
  return { ...Object.fromEntries(entries), added_later: { nested: [1] } };
}
