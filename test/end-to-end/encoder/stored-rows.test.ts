/**
 * An index whose token vectors have two bits a component, and one whose rows are pooled and refined, too, from the first document
 * to a backup and after a crash.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, expectReply, type Client } from '../../support/running/client.ts';
import { createTenant, runCommand, runJson } from '../../support/commands/command-line.ts';
import { makeScratch, type Scratch } from '../../support/running/launch.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { ranked, rankedWithComponents, type Index } from '../../support/running/wire.ts';

const dim = 384;
const poolFactor = 3;
/** Tokens of each text, with the two special ones of its only chunk. */
const tokensOf: Readonly<Record<string, number>> = { whale: 14, bee: 13, bridge: 13 };

const documents = [
  { doc_id: 'whale', text: 'The blue whale is the largest animal known to have existed.' },
  { doc_id: 'bee', text: 'Honey bees dance to tell each other where flowers are.' },
  { doc_id: 'bridge', text: 'A suspension bridge hangs its deck from cables between towers.' },
  { doc_id: 'long', text: 'Glaciers carve valleys as they move. '.repeat(120) },
];
const query = { query: 'how do insects communicate?', return_components: false };
const inspected = z.object({ data: z.array(z.looseObject({ segments: z.array(z.looseObject({})) })) });

async function exitCode({ data }: Scratch, ...args: readonly string[]): Promise<number | null> {
  return (await runCommand(args, { MAXSIMD_DATA_DIR: data })).exitCode;
}

describe.each([
  { name: 'rows of two bits', model: 'bge-small-maxsim/1', rowsOf: (tokens: number) => tokens },
  {
    name: 'pooled rows',
    model: 'bge-small-maxsim/2',
    rowsOf: (tokens: number) => Math.ceil(tokens / poolFactor),
  },
])('$name', ({ model, rowsOf }) => {
  let env: Readonly<Record<string, string>>;
  let scratch: Scratch;
  let server: ServerProcess;
  let client: Client;
  let index: Index;

  beforeAll(async () => {
    scratch = await makeScratch();
    env = { MAXSIMD_MODEL: model };
    server = await startServer({ scratch, env });
    ({ client } = await createTenant(server));
    index = await makeIndex(client);
    await put(client, index.id, documents);
  });

  afterAll(async () => {
    await server?.stop();
    await scratch.remove();
  });

  test('find by meaning, and score as a search does', async () => {
    const { results } = await find(client, index.id, query);
    expect(results[0]).toMatchObject({ doc_id: 'bee' });
    const scored = expectReply(
      await client.score({ ...query, documents: documents.map(({ doc_id, text }) => ({ doc_id, text })) }),
      ranked,
    );
    const scoreOf = (docId: string) => results.find(({ doc_id }) => doc_id === docId)?.score;
    for (const { doc_id, score } of scored.results) expect(score).toBe(scoreOf(doc_id));
  });

  test('have 384 dimensions of two bits', async () => {
    const { data } = await runJson(scratch.data, ['index', 'inspect', index.id], inspected);
    expect(data[0]?.segments).toMatchObject([{ dim, row_bits: 2 }]);
  });

  test('stand for the tokens of a text, all of which lie in it', async () => {
    const places = documents.filter(({ doc_id }) => doc_id in tokensOf);
    const components = { ...query, return_components: true };
    const { results } = expectReply(
      await client.score({ ...components, documents: places.map(({ doc_id, text }) => ({ doc_id, text })) }),
      rankedWithComponents,
    );
    expect(results).toHaveLength(places.length);
    let pooled = 0;
    for (const result of results) {
      const { text } = places.find(({ doc_id }) => doc_id === result.doc_id)!;
      for (const match of result.components.per_query_token) {
        expect(match.document_token_index).toBeLessThan(rowsOf(tokensOf[result.doc_id]!));
        const ranges = match.text_ranges ?? [];
        pooled += ranges.length;
        if (match.text_range !== undefined && ranges.length > 0)
          expect(ranges).toContainEqual(match.text_range);
        expect(ranges).toEqual(ranges.toSorted((one, other) => one.start - other.start));
        for (const { start, end } of ranges) expect(text.slice(start, end)).toMatch(/^\S+$/);
      }
    }
    expect(pooled > 0).toBe(rowsOf(poolFactor) === 1);
  });

  test('are there after a crash, intact, and in a backup', async () => {
    const before = await find(client, index.id, query);
    await server.kill();
    server = await startServer({ scratch, env });
    client = connect(server.url, client.key);
    expect((await find(client, index.id, query)).results).toEqual(before.results);
    expect(await exitCode(scratch, 'index', 'verify')).toBe(0);
    const archive = path.join(scratch.root, 'stored-rows.tar');
    expect(await exitCode(scratch, 'backup', archive)).toBe(0);
    await server.stop();
    const other = await makeScratch();
    expect(
      await exitCode(other, 'restore', archive, '--key-pepper', path.join(scratch.data, 'key-pepper')),
    ).toBe(0);
    await scratch.remove();
    scratch = other;
    server = await startServer({ scratch, env });
    client = connect(server.url, client.key);
    expect((await find(client, index.id, query)).results).toEqual(before.results);
  });
});
