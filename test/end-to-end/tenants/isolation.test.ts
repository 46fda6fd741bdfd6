/**
 * A key learns nothing of other tenants. The test asks every route of the OpenAPI document with own, foreign, random and
 * malformed ids, and with keys that are missing, bad, revoked, of a suspended tenant and of another tenant. A new route is
 * tested as soon as it is served. It fails if it has a parameter that is not known here, or no example of its body.
 */
import { randomUUID } from 'node:crypto';

import { beforeAll, describe, expect, test } from 'vitest';

import { rounds } from '../../rounds.ts';
import { pairedDifference } from '../../support/paired-difference.ts';
import { createKey } from '../../support/commands/command-line.ts';
import type { TestTenant } from '../../support/commands/operators.ts';
import { eventually } from '../../support/running/eventually.ts';
import { openExact, visible, type ExactAnswer } from '../../support/running/exact-answer.ts';
import { readOpenApi } from '../../support/running/openapi.ts';
import { addressOf, routesOf, type Route } from '../../support/running/routes.ts';
import { useSharedStage } from '../../support/running/stage.ts';
import { makeIndex, put } from '../../support/running/requests.ts';

const stage = useSharedStage();
const connection = openExact();

type Values = Readonly<Record<string, string>>;

const docId = 'secret';
let routes: readonly Route[];
let owner: TestTenant;
let stranger: TestTenant;
/** Keys with which nobody is let in: name -> key, status. */
let refused: ReadonlyMap<string, readonly [key: string | undefined, status: number]>;

beforeAll(async () => {
  routes = routesOf(await readOpenApi(stage.server.url));
  owner = stage.tenant;
  stranger = await stage.newTenant();
  const revoked = await createKey(stage.server, owner.id);
  await stage.operate('key', 'revoke', revoked.id);
  const suspended = await stage.newTenant();
  await stage.operate('tenant', 'suspend', suspended.id);
  await eventually(async () => (await suspended.client.usage()).status === 403);
  refused = new Map([
    ['no', [undefined, 401]],
    ['bad', [`${owner.key.slice(0, -1)}${owner.key.endsWith('A') ? 'B' : 'A'}`, 401]],
    ['revoked', [revoked.key, 401]],
    ['suspended', [suspended.key, 403]],
  ]);
});

/** An index of its own with one document, so that no attempt finds what another left. */
async function ownValues(tenant: TestTenant): Promise<Values> {
  const { id } = await makeIndex(tenant.client);
  await put(tenant.client, id, [{ doc_id: docId, text: 'river' }]);
  return { index_id: id, doc_id: docId };
}

const randomValues = (): Values => ({ index_id: randomUUID(), doc_id: randomUUID() });

/** No legal values: one parameter is malformed, the others are as given. */
function malformed(route: Route, others: Values): readonly Values[] {
  const wrong: Readonly<Record<string, readonly string[]>> = {
    index_id: ['x', '00000000-0000-0000-0000-00000000000g', `${others['index_id']}0`, '%', '\0'],
    doc_id: ['x'.repeat(256), '💥'.repeat(256)],
  };
  return route.parameters.flatMap((parameter) =>
    (wrong[parameter] ?? []).map((value) => ({ ...others, [parameter]: value })),
  );
}

/** Each example, one that is no JSON, one that is no legal body, and none. */
function bodiesOf(route: Route): readonly (string | undefined)[] {
  if (route.examples.length === 0) return [undefined];
  return [...route.examples.map((value) => JSON.stringify(value)), '{', '{"unknown":1}', undefined];
}

const send = (
  route: Route,
  values: Values,
  key: string | undefined,
  body: string | undefined,
): Promise<ExactAnswer> =>
  connection.send({ url: `${stage.server.url}${addressOf(route, values)}`, method: route.method, key, body });

/** With a body that is legal. */
const ask = (route: Route, values: Values, key: string): Promise<ExactAnswer> =>
  send(route, values, key, bodiesOf(route)[0]);

/** The same route asked twice over: an address with a value differs from another in nothing that is seen. */
async function expectSame(
  route: Route,
  key: string | undefined,
  [one, other]: readonly [Values, Values],
): Promise<ExactAnswer[]> {
  const answers: ExactAnswer[] = [];
  for (const body of bodiesOf(route)) {
    const answer = await send(route, one, key, body);
    expect(visible(answer), `${route.name} ${body}`).toEqual(visible(await send(route, other, key, body)));
    answers.push(answer);
  }
  return answers;
}

const withIndex = (): readonly Route[] => routes.filter(({ parameters }) => parameters.includes('index_id'));

describe('Isolation', () => {
  test('the document holds the routes of the contract', () => {
    expect(routes.length).toBeGreaterThanOrEqual(9);
    expect(withIndex().length).toBeGreaterThanOrEqual(5);
  });

  test('a key that lets nobody in gets one answer, whatever the route, the id and the body', async () => {
    const own = await ownValues(owner);
    for (const [name, [key, status]] of refused) {
      const [answers, reranks] = [new Set<string>(), new Set<string>()];
      for (const route of routes) {
        for (const values of [own, randomValues(), ...malformed(route, own)]) {
          for (const body of bodiesOf(route)) {
            const answer = await send(route, values, key, body);
            expect(answer.status, `${name} key, ${route.name}`).toBe(status);
            // Errors of these routes have the message once more, for clients of other services.
            const of = route.name.endsWith('/rerank') ? reranks : answers;
            of.add(JSON.stringify(visible(answer)));
          }
        }
      }
      expect([...answers], `${name} key`).toHaveLength(1);
      expect([...reranks], `${name} key`).toHaveLength(1);
    }
  });

  test('a foreign index answers as one that never was', async () => {
    for (const route of withIndex()) {
      const foreign = await ownValues(owner);
      const absent = { ...randomValues(), doc_id: docId };
      const [first] = await expectSame(route, stranger.key, [foreign, absent]);
      expect(first?.status, route.name).toBe(404);
      await expectSame(route, stranger.key, [foreign, randomValues()]);
      // Nothing of it reached the owner's: the same request finds all there is.
      const own = await ask(route, foreign, owner.key);
      expect([route.name, own.status]).toEqual([route.name, 200]);
      if (route.name.startsWith('DELETE')) expect(own.body).toBe('{"deleted":true}');
    }
  });

  test('so does one that was deleted, and one that its owner has used a moment ago', async () => {
    for (const route of withIndex()) {
      const deleted = await ownValues(stranger);
      await stranger.client.send('DELETE', `/v1/indexes/${deleted['index_id']}`);
      await expectSame(route, stranger.key, [deleted, randomValues()]);
      const used = await ownValues(owner);
      await owner.client.search(used['index_id']!, { query: 'river' });
      await expectSame(route, stranger.key, [used, randomValues()]);
    }
  });

  test('an id of a foreign document answers in an own index as one that never was', async () => {
    const foreign = await ownValues(owner);
    const { id } = await makeIndex(stranger.client);
    for (const route of withIndex().filter(({ parameters }) => parameters.includes('doc_id'))) {
      await expectSame(route, stranger.key, [
        { ...foreign, index_id: id },
        { ...randomValues(), index_id: id },
      ]);
    }
  });

  test('malformed ids are 422 beside every id, own, foreign and random', async () => {
    const own = await ownValues(stranger);
    const foreign = await ownValues(owner);
    for (const route of routes) {
      for (const [place, values] of malformed(route, own).entries()) {
        const answer = await ask(route, values, stranger.key);
        expect([answer.status, JSON.parse(answer.body)]).toEqual([
          422,
          { error: expect.objectContaining({ code: 'validation_error' }) },
        ]);
        for (const others of [foreign, randomValues()]) {
          const same = await ask(route, malformed(route, others)[place]!, stranger.key);
          expect(visible(same), route.name).toEqual(visible(answer));
        }
      }
    }
  });

  test('routes without an id hold nothing of another tenant', async () => {
    const one = await stage.newTenant();
    const other = await stage.newTenant();
    for (const route of routes.filter(({ parameters }) => parameters.length === 0)) {
      for (const body of bodiesOf(route)) {
        const answers = [];
        // The first of them has done all of this before: names, ids and counts are free to the second.
        for (const { key, name } of [one, other]) {
          const { status, body: text } = await send(route, {}, key, body);
          answers.push([status, withoutOwn(text).replaceAll(JSON.stringify(name), '"own name"')]);
        }
        const [before, after] = answers;
        expect(after, route.name).toEqual(before);
      }
    }
  });

  test('a foreign id takes as long as a random one', async () => {
    const foreign: Values[] = [];
    for (let n = 0; n < 20; n += 1) foreign.push(await ownValues(owner));
    const pairs: (readonly [number, number])[] = [];
    for (let n = 0; n < rounds({ short: 100, nightly: 2000 }); n += 1) {
      for (const route of withIndex()) {
        const values = [foreign[n % foreign.length]!, randomValues()] as const;
        const time = async (kind: 0 | 1) => (await ask(route, values[kind], stranger.key)).milliseconds;
        // Each comes first as often.
        const first = await time(n % 2 === 0 ? 0 : 1);
        const second = await time(n % 2 === 0 ? 1 : 0);
        pairs.push(n % 2 === 0 ? [first, second] : [second, first]);
      }
    }
    expect(pairedDifference(pairs)).toBeUndefined();
  });
});

/** Ids, times and durations are the request's own. */
function withoutOwn(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'id')
    .replaceAll(/"[0-9A-Z]{26}"/g, '"id"')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
    .replaceAll(/"latency_ms":\d+/g, '"latency_ms":0');
}
