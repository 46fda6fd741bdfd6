/**
 * One request must not delay the others: no body and no answer holds the event loop for long. Times are processor time of
 * this thread, and the least of a few runs, so a busy machine does not matter. The bound also holds for a machine of half
 * the speed. A reader that builds the whole value before it checks the bounds needs 400 to 1,500 ms.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bodyBytesMax, textBytesMax } from '../../src/http/limits.ts';
import { metadataBytesMax } from '../../src/service/contract.ts';
import { startHttp } from '../support/http/http-server.ts';
import type { Harness } from '../support/http/http-server.ts';
import { turnsOf } from '../support/turns.ts';

const holdMsMax = 100;
const usage = { inputTokens: 1, documentCount: 0, chunkCount: 100, candidateCount: 100, latencyMs: 1 };

let http: Harness;
let urls: Readonly<Record<'search' | 'score' | 'upsert' | 'create', string>>;

beforeAll(async () => {
  http = await startHttp();
  // The encoder of words would hold the event loop, so no document reaches it.
  http.service.upsertDocuments = async (_context, indexId) => ({
    indexId,
    upsertedDocuments: 0,
    upsertedChunks: 0,
    failed: [],
    unknownTokens: [],
    usage,
  });
  http.service.score = async (_context, { documents }) => ({
    results: documents.map(({ docId, metadata }) => ({
      docId,
      chunkId: docId,
      chunkIndex: 0,
      score: 1,
      normalizedScore: 1,
      metadata,
    })),
    usage,
  });
  const index = `/v1/indexes/${await http.createIndex()}`;
  urls = {
    search: `${index}/search`,
    score: '/v1/score',
    upsert: `${index}/documents`,
    create: '/v1/indexes',
  };
});
afterAll(() => http[Symbol.asyncDispose]());

type Route = keyof typeof urls;

/** The least that the longest turn of the event loop took, over a few requests. */
async function holdMs(route: Route, payload: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 4 && least > holdMsMax / 2; run += 1) {
    http.service.calls.length = 0;
    const { longestMs, result } = await turnsOf(() =>
      http.inject({ method: 'POST', url: urls[route], payload }),
    );
    expect([200, 201, 422]).toContain(result.statusCode);
    least = Math.min(least, longestMs);
  }
  return least;
}

/** As many units between head and tail as the bytes allow; they differ where their place makes them. */
function filled(
  head: string,
  unit: string | ((place: number) => string),
  tail: string,
  bytesMax: number,
): string {
  const room = bytesMax - Buffer.byteLength(head + tail);
  if (typeof unit === 'string') return head + unit.repeat(Math.floor(room / Buffer.byteLength(unit))) + tail;
  let units = '';
  for (let place = 0; ; place += 1) {
    const next = unit(place);
    // All of them are ASCII.
    if (units.length + next.length > room) return head + units + tail;
    units += next;
  }
}

const body = (head: string, unit: string | ((place: number) => string), tail = '') =>
  filled(head, unit, tail, bodyBytesMax);

const fifty = (fields: string) =>
  `{"query":"q","documents":[${Array.from({ length: 50 }, (_, place) => `{"doc_id":"d${place}",${fields}}`).join(',')}]}`;
const metadata = (unit: string) => filled('{"a":[0', unit, ']}', metadataBytesMax);
const inDocument = (head: string, unit: string | ((place: number) => string), tail = '') =>
  body(`{"query":"q","documents":[{"doc_id":"d","text":"t"${head}`, unit, `${tail}}]}`);

describe('no body holds the event loop:', () => {
  test.each<[string, Route, () => string]>([
    ['brackets', 'search', () => body('', '[')],
    ['braces', 'upsert', () => body('', '{"a":')],
    ['brackets in a filter', 'search', () => body('{"query":"q","filter":{"a":', '[')],
    [
      'brackets that close, then the key again',
      'search',
      () =>
        `{"query":${'['.repeat(2_500_000)}${']'.repeat(2_500_000)},"query":"q","filter":{"n":${'9'.repeat(20)}}}`,
    ],
    [
      'distinct keys in metadata',
      'score',
      () => inDocument(',"metadata":{"":0', (place) => `,"${place.toString(36)}":0`, '}'),
    ],
    [
      'distinct keys in a schema',
      'create',
      () =>
        body('{"name":"n","metadata_schema":{"a":{"":0', (place) => `,"${place.toString(36)}":1e308`, '}}}'),
    ],
    ['one key again and again in metadata', 'score', () => inDocument(',"metadata":{"":0', ',"":0', '}')],
    ['metadata again and again', 'score', () => inDocument('', `,"metadata":${metadata(',0')}`)],
    ['objects in a filter', 'search', () => body('{"query":"q","filter":{"a":[0', ',{}', ']}}')],
    ['unknown properties', 'create', () => body('{"name":"n"', (place) => `,"${place}":0`, '}')],
    ['unknown properties of a document', 'score', () => inDocument('', (place) => `,"${place}":0`)],
    ['an endless key', 'search', () => body('{"query":"q","', 'k', '":0}')],
    ['__proto__', 'search', () => body('{"query":"q"', ',"__proto__":{}', '}')],
    ['too many documents', 'upsert', () => body('{"documents":[{}', ',{}', ']}')],
    ['a query of escapes', 'search', () => body('{"query":"', '\\n', '"}')],
    ['a query of quotes', 'search', () => body('{"query":"', '\\"', '"}')],
    ['a name of half characters', 'create', () => body('{"name":"', '\\ud800', '"}')],
    ['endless digits', 'search', () => body('{"query":"q","top_k":0.', '0', '1}')],
    ['white space', 'score', () => inDocument(',"metadata":{"a":1', ' \n', '}')],
    ['a text that never ends', 'search', () => body('{"query":"', 'x')],
    ['fifty documents of escaped text', 'score', () => fifty(`"text":"${'\\n'.repeat(52_000)}"`)],
    ['fifty documents of emoji', 'upsert', () => fifty(`"text":"${'😀'.repeat(textBytesMax / 4)}"`)],
    [
      'fifty texts with metadata of zeros',
      'upsert',
      () => fifty(`"text":"${'a '.repeat(40_000)}","metadata":${metadata(',0')}`),
    ],
    ['fifty metadata of lists', 'score', () => fifty(`"text":"t","metadata":${metadata(',[[[[]]]]')}`)],
    [
      'fifty metadata of fields',
      'score',
      () =>
        fifty(
          `"text":"t","metadata":${filled('{"":0', (place) => `,"${place.toString(36)}":1e308`, '}', metadataBytesMax)}`,
        ),
    ],
  ])('%s (%s)', async (_name, route, payload) => {
    const text = payload();
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bodyBytesMax);
    expect(await holdMs(route, text)).toBeLessThan(holdMsMax);
  });
});

describe('a long answer leaves turns to others:', () => {
  /** Turns of the event loop from the request to its answer. */
  async function countTurns(request: () => ReturnType<Harness['inject']>) {
    let turns = 0;
    let turning = true;
    const turn = (): void => {
      turns += 1;
      if (turning) setImmediate(turn);
    };
    setImmediate(turn);
    const response = await request();
    turning = false;
    expect(response.statusCode).toBe(200);
    return { turns, response };
  }
  const text = `{"a":"${'é'.repeat((metadataBytesMax - 8) / 2)}"}`;

  test('a list of indexes with large metadata schemas', async () => {
    for (let count = 0; count < 200; count += 1) {
      await http.inject({
        method: 'POST',
        url: urls.create,
        payload: `{"name":"n${count}","metadata_schema":${text}}`,
      });
    }
    const { turns, response } = await countTurns(() => http.inject({ url: '/v1/indexes' }));
    expect(response.rawPayload.length).toBeGreaterThan(200 * metadataBytesMax);
    expect(turns).toBeGreaterThan(response.rawPayload.length / (512 * 1024));
    const { data } = response.json<{ data: { metadata_schema: unknown }[] }>();
    expect(data.slice(-200).map((index) => JSON.stringify(index.metadata_schema))).toEqual(
      Array(200).fill(text),
    );
  });

  test('results with metadata and components', async () => {
    const similarities = new Float32Array(512).fill(Math.PI);
    const textRange = { start: 100_000, end: 100_010 };
    const places = Array.from({ length: 512 }, () => ({ place: textRange, all: [textRange, textRange] }));
    const components = { maxsim: 1, similarities, documentTokens: new Uint32Array(512), places };
    http.service.ranked = {
      results: Array.from({ length: 100 }, (_, place) => ({
        docId: `d${place}`,
        chunkId: 'c',
        chunkIndex: place,
        score: 1,
        normalizedScore: 1,
        textRange,
        metadata: text,
        components,
      })),
      usage,
    };
    const payload = '{"query":"q","return_components":true}';
    const { turns, response } = await countTurns(() =>
      http.inject({ method: 'POST', url: urls.search, payload }),
    );
    http.service.ranked = undefined;
    expect(turns).toBeGreaterThan(response.rawPayload.length / (512 * 1024));
    expect(response.json<{ results: { doc_id: string }[] }>().results.map((result) => result.doc_id)).toEqual(
      Array.from({ length: 100 }, (_, place) => `d${place}`),
    );
  });
});
