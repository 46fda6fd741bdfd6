/** Words of a query that match metadata values as a whole: an addition of ours to the interface. */
import { beforeAll, describe, expect, test } from 'vitest';

import { expectInvalid, expectReply } from '../../../support/running/client.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { createRandom } from '../../../support/running/random.ts';
import { find, makeIndex, put } from '../../../support/running/requests.ts';
import { passages, recombine } from '../../../support/running/texts.ts';
import {
  index as indexOf,
  queried,
  rankedByDocument,
  rankedWithComponents,
} from '../../../support/running/wire.ts';

const stage = await useContractStage();
const random = createRandom(64);
/** Document 7 has the code E07.65; every third has a number, too. */
const codeOf = (at: number): string => `E${String(at).padStart(2, '0')}.65`;
const documents = Array.from({ length: 90 }, (_, at) => ({
  doc_id: `d${at}`,
  text: recombine(random, at < 10 ? 400 : 30),
  metadata: {
    codes: [codeOf(at), ...(at >= 80 ? ['SHARED-1'] : [])],
    ...(at % 3 === 0 ? { part: [{ number: `N ${at}` }] } : {}),
    half: at % 2,
  },
}));

let library = '';
beforeAll(async () => {
  library = (await makeIndex(stage.client, { match_fields: ['codes', 'part.number'] })).id;
  for (let first = 0; first < documents.length; first += 45)
    await put(stage.client, library, documents.slice(first, first + 45));
});

type Body = Readonly<Record<string, unknown>>;
const explained = async (body: Body, indexId = library) =>
  expectReply(await stage.client.search(indexId, { return_components: true, ...body }), rankedWithComponents)
    .results;
const matchesIn = (results: Awaited<ReturnType<typeof explained>>) =>
  results.flatMap(({ doc_id: docId, components: { matches = [] } }) =>
    matches.map(({ field, value }) => `${docId} ${field}: ${value}`),
  );

describe('A search of an index with match fields', () => {
  test('has the document of a code first, however it is written, and says why', async () => {
    for (const code of ['E42.65', 'e4265', '(E42-65)?', 'E42.65是什么']) {
      const query = `🎈 what do you know about ${code}`;
      const [best, ...others] = await explained({ query, match: { weight: 10 } });
      expect(best).toMatchObject({
        doc_id: 'd42',
        components: { matches: [{ field: 'codes', value: 'E42.65', start: 25 }] },
      });
      const { score, components } = best!;
      const { matches = [], maxsim, per_query_token: tokens } = components;
      expect(score).toBeCloseTo(maxsim + matches[0]!.bonus, 4);
      expect(maxsim).toBeCloseTo(
        tokens.reduce((sum, { similarity }) => sum + similarity, 0),
        3,
      );
      for (const other of others) {
        expect(other.components.matches).toEqual([]);
        expect(other.score).toBeCloseTo(other.components.maxsim, 4);
      }
    }
  });

  test('has the order of a plain evaluator in an exact search, and the same scores in every other', async () => {
    for (let round = 0; round < 8; round++) {
      const [one, two] = [random.integer(0, 89), random.integer(0, 29) * 3];
      const query = `${passages[round]!.question} ${codeOf(one)} n${two} shared 1`;
      const asked = { query, top_k: 100, candidate_k: 10 };
      const exact = await explained({ ...asked, exact: true });
      const plain = await explained({ ...asked, exact: true, match: false });
      // The bonus of a name is in every answer that has it.
      const bonuses = new Map(
        exact.flatMap(({ components }) =>
          components.matches!.map(({ value, bonus }) => [value, bonus] as const),
        ),
      );
      const namesOf = (docId: string): readonly string[] => {
        const at = Number(docId.slice(1));
        return [
          ...(at === one ? [codeOf(at)] : []),
          ...(at === two ? [`N ${at}`] : []),
          ...(at >= 80 ? ['SHARED-1'] : []),
        ];
      };
      const best = new Map<string, { chunk: number; score: number }>();
      for (const { doc_id: docId, chunk_index: chunk, score } of plain) {
        const known = best.get(docId);
        if (known === undefined || score > known.score || (score === known.score && chunk < known.chunk))
          best.set(docId, { chunk, score });
      }
      const expected = plain.map((result) => {
        const isBest = best.get(result.doc_id)!.chunk === result.chunk_index;
        const names = isBest ? namesOf(result.doc_id) : [];
        const sum = names.reduce((before, name) => before + bonuses.get(name)!, 0);
        return {
          id: result.chunk_id,
          score: result.score + sum,
          maxsim: result.score,
          names: names.toSorted(),
        };
      });
      const byScore = new Map(expected.map((result) => [result.id, result]));
      const scores = exact.map(({ score }) => score);
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
      expect(new Set(exact.flatMap(({ doc_id: docId }) => namesOf(docId)))).toEqual(new Set(bonuses.keys()));
      const shown = await explained(asked);
      const grouped = expectReply(
        await stage.client.search(library, {
          ...asked,
          top_k: 10,
          return_components: true,
          group_by_document: true,
        }),
        rankedByDocument,
      ).results.flatMap(({ chunks }) => chunks);
      for (const result of [...exact, ...shown, ...grouped]) {
        const wanted = byScore.get(result.chunk_id)!;
        expect(result.score).toBeCloseTo(wanted.score, 4);
        expect(result.components!.maxsim).toBeCloseTo(wanted.maxsim, 4);
        expect(result.components!.matches!.map(({ value }) => value).toSorted()).toEqual(wanted.names);
      }
      // Few candidates leave out no document that matches.
      expect(matchesIn(shown).toSorted()).toEqual(matchesIn(exact).toSorted());
    }
  });

  test('matches what passes the filter, with the bonus that it has without', async () => {
    const query = 'which one is E43.65 or E44.65';
    const all = await explained({ query, top_k: 100 });
    const isIt = ({ doc_id: docId }: { doc_id: string }): boolean => docId === 'd43';
    for (const narrow of [{ filter: { half: 1 } }, { where: { half: { gt: 0 } } }]) {
      const some = await explained({ query, ...narrow });
      expect(matchesIn(some)).toEqual(['d43 codes: E43.65']);
      expect(some.find(isIt)!.score).toBe(all.find(isIt)!.score);
    }
  });

  test('takes some of the fields, another weight, or none, each search of a request on its own', async () => {
    const query = 'E42.65 and n42';
    const with_ = (match?: unknown) => ({ query, match, return_components: true, top_k: 3 });
    const { results } = expectReply(
      await stage.client.query(library, [
        with_(),
        with_({ weight: 1 }),
        with_({ fields: ['part.number'] }),
        with_(false),
        with_(null),
      ]),
      queried,
    );
    const [plain, twice, number, none, nothing] = results.map(({ results: [best] }) =>
      best !== undefined && 'components' in best ? best.components! : undefined,
    );
    expect(plain!.matches!.map(({ field }) => field)).toEqual(['codes', 'part.number']);
    for (const [at, { bonus }] of twice!.matches!.entries())
      expect(bonus).toBeCloseTo(2 * plain!.matches![at]!.bonus, 4);
    expect(number!.matches).toEqual(plain!.matches!.slice(1));
    expect(none).not.toHaveProperty('matches');
    expect(nothing).toEqual(plain);
  });

  test('counts the bonus in `normalized_score`, at most 1, and in `min_score`', async () => {
    const query = 'E42.65';
    const [best, second] = (await find(stage.client, library, { query, match: { weight: 10 } })).results;
    expect(best).toMatchObject({ doc_id: 'd42', normalized_score: 1 });
    expect(second!.normalized_score).toBeLessThan(1);
    const strict = { query, match: { weight: 10 }, min_score: 1 };
    expect((await find(stage.client, library, strict)).results.map(({ doc_id: docId }) => docId)).toEqual([
      'd42',
    ]);
  });
});

describe('A document matches', () => {
  const text = 'A lighthouse of the nineteenth century.';
  const found = async (indexId: string, query: string) =>
    matchesIn(await explained({ query }, indexId)).toSorted();
  const patch = (path: string, body: Body) => stage.client.send('PATCH', `/v1/indexes/${path}`, { body });

  test('by its metadata of now, once they were written with the match fields of the index', async () => {
    const { id } = await makeIndex(stage.client);
    await put(
      stage.client,
      id,
      ['a', 'b', 'c'].map((docId) => ({ doc_id: docId, text, metadata: { code: `${docId}-77` } })),
    );
    expectInvalid(await stage.client.search(id, { query: 'a', match: {} }), 'match');
    const fields = async (match: readonly string[] | null) =>
      expectReply(await patch(id, { match_fields: match }), indexOf);
    await fields(['code', 'other']);
    expect(await found(id, 'A77')).toEqual([]);
    expect((await patch(`${id}/documents/a`, { metadata_merge: { seen: true } })).status).toBe(200);
    await put(stage.client, id, [{ doc_id: 'b', text, metadata: { other: ['B.77', 7] } }]);
    expect(await found(id, 'A77 b77 c77')).toEqual(['a code: a-77', 'b other: B.77']);
    expect((await patch(`${id}/documents/a`, { metadata: { code: 'A-78' } })).status).toBe(200);
    expect(await found(id, 'A77 or A78')).toEqual(['a code: A-78']);
    await fields(['code']);
    expect(await found(id, 'A78 b77')).toEqual(['a code: A-78']);
    await fields(null);
    const [best] = await explained({ query: 'A78' }, id);
    expect(best!.components).not.toHaveProperty('matches');
    await stage.client.deleteDocument(id, 'a');
    await fields(['code']);
    expect(await found(id, 'A78')).toEqual([]);
  });
});

describe('`match`', () => {
  test.each([
    [true, 'match'],
    ['codes', 'match'],
    [['codes'], 'match'],
    [{ weight: 0 }, 'match.weight'],
    [{ weight: 10.5 }, 'match.weight'],
    [{ weight: '1' }, 'match.weight'],
    [{ fields: [] }, 'match.fields'],
    [{ fields: 'codes' }, 'match.fields'],
    [{ fields: ['codes', 'codes'] }, 'match.fields.1'],
    [{ fields: ['codes', 'part'] }, 'match.fields.1'],
    [{ more: 1 }, 'match.more'],
  ])('is refused as %j', async (match, path) => {
    expectInvalid(await stage.client.search(library, { query: 'bread', match }), path);
    expectInvalid(await stage.client.query(library, [{ query: 'bread', match }]), `queries.0.${path}`);
  });

  test('is no field of `/v1/score`', async () => {
    const score = { query: 'E42.65', documents: [{ doc_id: 'a', text: 'b' }], match: {} };
    expectInvalid(await stage.client.score(score), 'match');
  });
});
