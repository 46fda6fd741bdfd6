/**
 * A search for the dearest body of every route: random shapes, then small changes to the worst of them, once for the
 * longest turn of the event loop and once for the time of a byte. Api process and encoder process share one thread here,
 * so a turn holds the work of both. `TEST_NIGHTLY=1` searches for minutes and prints a table of the worst.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { bodyBytesMax } from '../../../src/http/limits.ts';
import { rounds } from '../../rounds.ts';
import { bodyOf, changed, randomShape, type Shape } from '../../support/hostile/shapes.ts';
import { parseOpenApi } from '../../support/running/openapi.ts';
import { announceRandom } from '../../support/running/random.ts';
import { addressOf, routesOf, type Route } from '../../support/running/routes.ts';
import { openOneThreadStage, type OneThreadStage } from '../../support/stages/one-thread-stage.ts';
import { turnsOf } from '../../support/turns.ts';

/** The budget is 50 ms; twice that leaves room for a machine of half the speed. */
const holdMsMax = 100;
/** Bytes of a body while the search goes on; the worst are measured at the whole size. */
const searchedBytes = rounds({ short: 128 << 10, nightly: 256 << 10 });

const acceptedBytesMax = rounds({ short: 512 << 10, nightly: bodyBytesMax });
const bytesMin = 64 << 10;

interface Cost {
  readonly route: string;
  readonly shape: Shape;
  readonly status: number;
  readonly bytes: number;
  readonly longestMs: number;
  readonly nsPerByte: number;
}

describe('the dearest bodies', () => {
  const random = announceRandom('dearest bodies');
  let stage: OneThreadStage;
  let routes: readonly Route[];
  let indexId: string;
  let names = 0;

  beforeAll(async () => {
    stage = await openOneThreadStage();
    const { body } = await stage.app.inject({ url: '/openapi.json' });
    // A body is read even if its route takes none, so these routes are tested too.
    routes = routesOf(parseOpenApi(JSON.parse(body))).filter(({ method }) => method !== 'GET');
    const created = await send('POST', '/v1/indexes', '{"name":"searched"}');
    indexId = created.json<{ id: string }>().id;
  });
  afterAll(async () => stage[Symbol.asyncDispose]());

  const send = (method: string, url: string, payload?: string) =>
    stage.app.inject({
      method: method as 'POST',
      url,
      headers: { authorization: `Bearer ${stage.apiKey}`, 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { payload }),
    });

  async function costOf(route: Route, shape: Shape, bytesMax: number): Promise<Cost> {
    names += 1;
    const body = bodyOf(route, shape, bytesMax, `name ${names}`);
    const isDelete = route.method === 'DELETE';
    const values = { index_id: isDelete ? '00000000-0000-4000-8000-000000000000' : indexId, doc_id: 'd0' };
    const { longestMs, busyMs, result } = await turnsOf(() =>
      send(route.method, addressOf(route, values), body),
    );
    const { statusCode: status } = result;
    // On a busy machine an answer may pass its deadline; nothing else may fail.
    if (!result.body.includes('the deadline passed'))
      expect(status, `${route.name} ${JSON.stringify(shape)} ${result.body}`).toBeLessThan(500);
    if (status === 201) await send('DELETE', `/v1/${String(result.headers['location'])}`);
    const bytes = Buffer.byteLength(body);
    // A request costs something whatever its size.
    const nsPerByte = (busyMs * 1e6) / Math.max(bytes, bytesMin);
    return { route: route.name, shape, status, bytes, longestMs, nsPerByte };
  }

  /** The worst of random shapes, changed as long as that makes it worse. */
  async function climb(route: Route, of: (cost: Cost) => number): Promise<Cost> {
    const tries = rounds({ short: 12, nightly: 200 });
    let worst = await costOf(route, randomShape(random), searchedBytes);
    for (let n = 1; n < 2 * tries; n += 1) {
      const shape = n < tries ? randomShape(random) : changed(worst.shape, random);
      let cost = await costOf(route, shape, searchedBytes);
      // A turn that was long by chance is short in a second run.
      if (of(cost) > of(worst)) cost = await costOf(route, shape, searchedBytes);
      if (of(cost) > of(worst)) worst = cost;
    }
    return worst;
  }

  /** The run whose longest turn is least, of a few at the whole size. */
  async function atFullSize({ shape, status }: Cost, route: Route): Promise<Cost> {
    // A refusal is quick at any size. Encoding megabytes of text would take seconds, so accepted bodies are smaller.
    const bytes = status < 300 ? acceptedBytesMax : bodyBytesMax;
    let least = await costOf(route, shape, bytes);
    for (let run = 1; run < 4 && least.longestMs > holdMsMax / 4; run += 1) {
      const again = await costOf(route, shape, bytes);
      if (again.longestMs < least.longestMs) least = again;
    }
    return least;
  }

  test('stop the event loops for no longer than their budget', { timeout: 3_600_000 }, async () => {
    const costs: Cost[] = [];
    for (const route of routes) {
      for (const aim of [({ longestMs }: Cost) => longestMs, ({ nsPerByte }: Cost) => nsPerByte]) {
        costs.push(await atFullSize(await climb(route, aim), route));
      }
    }
    console.log(costs.map(row).join('\n'));
    const over = costs.filter(({ longestMs }) => longestMs > holdMsMax);
    expect(over.map(row)).toEqual([]);
  });
});

function row({ route, shape, status, bytes, longestMs, nsPerByte }: Cost): string {
  const { wrap, text, value, distinct, documents, ending, place, example } = shape;
  const inner = wrap === 'string' || wrap === 'key' ? text : value;
  const what = `${distinct ? 'numbered ' : ''}${wrap} of ${JSON.stringify(inner)}, up to ${shape.bytes} bytes at place ${place} of example ${example}, ${documents} documents, ${ending}`;
  return `| ${route} | ${what} | ${status} | ${bytes} | ${longestMs.toFixed(1)} | ${nsPerByte.toFixed(1)} |`;
}
