/** The SDKs of Cohere, from npm and PyPI, and LangChain's `CohereRerank`: as their users call them, with another address. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { missingPython, nodeTools, pythonEnvironment, run } from '../../clients/tools/install.ts';
import { expectReply } from '../support/running/client.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { passages } from '../support/running/texts.ts';
import { ranked } from '../support/running/wire.ts';
import { guideExamples } from '../clients/guide.ts';

const stage = useSharedStage();
const packages = path.join(import.meta.dirname, 'cohere');
const noPython = missingPython();
const query = passages[3]!.question;
const texts = passages.slice(0, 5).map(({ text }) => text);
const bestOfGuide = 'Honey bees dance to tell each other where flowers are.\n';
/** Positions and scores, as `/v1/score` has them. */
let pairs: [index: number, score: number][];

beforeAll(async () => {
  const documents = texts.map((text, at) => ({ doc_id: String(at), text }));
  const { results } = expectReply(await stage.client.score({ query, documents }), ranked);
  pairs = results.map(({ doc_id, score }) => [Number(doc_id), score]);
});

const environment = (): Record<string, string> => ({
  MAXSIMD_URL: stage.server.url,
  MAXSIMD_API_KEY: stage.tenant.key,
  PYTHONDONTWRITEBYTECODE: '1',
});

describe('the package of npm', () => {
  let folder = '';
  beforeAll(async () => {
    folder = path.resolve(await nodeTools('cohere', packages), '../..');
  });

  interface Sdk {
    CohereClientV2: new (options: { token: string; baseUrl: string }) => {
      rerank(request: object): Promise<{ results: { index: number; relevanceScore: number }[] }>;
    };
  }

  test('ranks as the service does, and gets its errors', async () => {
    const { CohereClientV2 } = createRequire(path.join(folder, 'package.json'))('cohere-ai') as Sdk;
    const connect = (token: string) => new CohereClientV2({ token, baseUrl: stage.server.url });
    const client = connect(stage.tenant.key);
    const request = { model: 'default', query, documents: texts };
    const rank = async (more: object): Promise<[number, number][]> =>
      (await client.rerank({ ...request, ...more })).results.map((one) => [one.index, one.relevanceScore]);
    expect(await rank({})).toEqual(pairs);
    expect(await rank({ topN: 2, maxTokensPerDoc: 4096, priority: 0 })).toEqual(pairs.slice(0, 2));
    await expect(rank({ documents: Array(1001).fill('river') })).rejects.toMatchObject({
      statusCode: 422,
      body: { error: { code: 'validation_error', message: expect.stringContaining('at most 1000') } },
    });
    await expect(connect('qkv_live_wrong').rerank(request)).rejects.toMatchObject({
      statusCode: 401,
      body: { error: { code: 'authentication_failed' } },
    });
  });

  test('runs the example of the guide', async () => {
    const [example = ''] = guideExamples('js');
    const file = path.join(folder, 'example.mjs');
    writeFileSync(file, example);
    expect(await run(process.execPath, [file], folder, environment())).toBe(bestOfGuide);
  });
});

describe.skipIf(noPython !== undefined)(`Python${noPython === undefined ? '' : ` (${noPython})`}`, () => {
  let python = '';
  beforeAll(async () => {
    python = path.join(
      await pythonEnvironment('cohere-python', path.join(packages, 'requirements.txt')),
      'python',
    );
  });

  test('the package of PyPI and LangChain rank as the service does, and get its errors', async () => {
    const ended = promisify(execFile)(python, [path.join(packages, 'rerank.py')], {
      env: { ...process.env, ...environment() },
    });
    ended.child.stdin?.end(JSON.stringify({ query, texts }));
    const { tokens, ...printed } = JSON.parse((await ended).stdout) as Record<string, unknown>;
    expect(tokens).toBeGreaterThan(100);
    expect(printed).toEqual({
      sync: pairs,
      best: pairs.slice(0, 2),
      async: pairs,
      langchain: pairs.slice(0, 3),
      refusals: ['UnprocessableEntityError validation_error', 'UnauthorizedError authentication_failed'],
    });
  });

  test('the example of the guide runs', async () => {
    const [example = ''] = guideExamples('py');
    expect(await run(python, ['-c', example], packages, environment())).toBe(bestOfGuide);
  });
});
