/** Tests that need the real model and its tokenizer: relevance, the count of tokens, windows, and texts of every script. */
import { beforeAll, describe, expect, test } from 'vitest';

import { expectInvalid, expectReply } from '../../../support/running/client.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { useSharedStage } from '../../../support/running/stage.ts';
import { passages, textOfTokens } from '../../../support/running/texts.ts';
import { ranked, rankedWithComponents, upserted } from '../../../support/running/wire.ts';

const stage = useSharedStage();
let library = '';

beforeAll(async () => {
  library = (await makeIndex(stage.client)).id;
  await put(
    stage.client,
    library,
    passages.map(({ subject, text }) => ({ doc_id: subject, text })),
  );
});

describe('With the default model', () => {
  test('[decision-5] `minimum_chunk_tokens` applies to a trailing window (a shorter remainder is joined to the window before it); a document with at least one token always yields a chunk', async () => {
    const { client } = stage;
    const chunking = { max_tokens: 20, overlap_tokens: 4, minimum_chunk_tokens: 6 };
    const { id } = await makeIndex(client, { chunking });
    const chunksOf = async (tokens: number): Promise<number> => {
      const stored = await put(client, id, [{ doc_id: `of ${tokens}`, text: textOfTokens(tokens) }]);
      expect(stored.usage.input_tokens).toBe(tokens);
      return stored.upserted_chunks;
    };
    expect(await chunksOf(1)).toBe(1);
    expect(await chunksOf(5)).toBe(1);
    expect(await chunksOf(20)).toBe(1);
    // Windows begin every 16 tokens: the 21st token alone makes no chunk, the 26th makes one.
    expect(await chunksOf(21)).toBe(1);
    expect(await chunksOf(26)).toBe(2);
    expect(await chunksOf(36)).toBe(2);
    expect(await chunksOf(37)).toBe(2);
    expect(await chunksOf(100)).toBe(6);
  });

  test('[search-an-index-2, limits-9] `query` | string | Required, length at least 1, at most 8 KiB as UTF-8.', async () => {
    const { client } = stage;
    for (const query of [undefined, '', null, 7, {}, ['river']]) {
      expectInvalid(await client.search(library, { query }), 'query');
    }
    const limit = 8 * 1024;
    const atLimit = [
      `river${' '.repeat(limit - 5)}`,
      'é'.repeat(limit / 2),
      '🪸'.repeat(limit / 4),
      textOfTokens(2000).slice(0, limit),
    ];
    for (const query of atLimit) {
      expectReply(await client.search(library, { query }), ranked);
      expectInvalid(await client.search(library, { query: `${query}x` }), 'query');
    }
    expectReply(await client.search(library, { query: 'x' }), ranked);
  });

  test('[search-an-index-7, what-the-service-does-4, what-the-service-does-6, what-the-service-does-7] Response: `{ results: [Result item, ...], usage: request usage object }`. Results are relevance-ranked chunk references; source text is not included.', async () => {
    const { client } = stage;
    let first = 0;
    for (const passage of passages) {
      const reply = await client.search(library, { query: passage.question });
      const { results } = expectReply(reply, ranked);
      const scores = results.map((result) => result.score);
      expect(scores).toEqual(scores.toSorted((left, right) => right - left));
      if (results[0]?.doc_id === passage.subject) first += 1;
      expect(reply.text).not.toContain(passage.text.slice(0, 30));
    }
    // A real model: nearly every question finds its own passage before 35 others.
    expect(first).toBeGreaterThanOrEqual(Math.ceil(passages.length * 0.9));
  });

  test('[decision-41] the default model scores every query token up to its position limit; longer queries are truncated there', async () => {
    const { client } = stage;
    const words = textOfTokens(1300);
    const { usage } = await find(client, library, { query: words });
    expect(usage.input_tokens).toBe(1300);
    const reply = expectReply(
      await client.search(library, { query: textOfTokens(100), top_k: 1, return_components: true }),
      rankedWithComponents,
    );
    expect(reply.results[0]?.components.per_query_token.length).toBeGreaterThanOrEqual(100);
  });

  test('[upsert-documents-9, upsert-documents-10] A document that cannot be processed appears in `failed` and does not count in `upserted_documents`. An example failure is a document that produced no chunks.', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    const blanks = [' ', '\n\n', '\u00a0\u3000', '\u200b'].map((text, position) => ({
      doc_id: `blank ${position}`,
      text,
    }));
    const reply = expectReply(await tenant.client.upsert(id, blanks), upserted);
    expect(reply).toMatchObject({ upserted_documents: 0, upserted_chunks: 0 });
    expect(reply.failed.map((failure) => failure.doc_id)).toEqual(blanks.map((document) => document.doc_id));
    expect(reply.usage).toMatchObject({ input_tokens: 0, document_count: 0, chunk_count: 0 });
    expect((await readUsage(tenant.client)).usage).toMatchObject({ documents: 0, document_upserts: 0 });
  });

  test('[decision-27] tokens counted are tokenizer tokens of the text, without special tokens and without counting overlaps twice', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 20, overlap_tokens: 10, minimum_chunk_tokens: 1 },
    });
    const stored = await put(client, id, [{ doc_id: 'a', text: textOfTokens(100) }]);
    expect(stored.upserted_chunks).toBe(9);
    expect(stored.usage.input_tokens).toBe(100);
    // Names of special tokens in a text are ordinary text.
    const special = await put(client, id, [{ doc_id: 'b', text: '[MASK] [CLS] [SEP]' }]);
    expect(special.usage.input_tokens).toBeGreaterThan(6);
  });

  test('an addition to the answer names the documents with text that the model does not know', async () => {
    const { id } = await makeIndex(stage.client);
    const reply = expectReply(
      await stage.client.upsert(id, [
        { doc_id: 'known', text: 'river' },
        { doc_id: 'emoji', text: 'river 🦆 🦢' },
        { doc_id: 'script', text: 'ᏣᎳᎩ' },
        { doc_id: 'blank', text: ' ' },
      ]),
      upserted,
    );
    expect(reply.unknown_tokens?.toSorted((a, b) => a.doc_id.localeCompare(b.doc_id))).toEqual([
      { doc_id: 'emoji', unknown_tokens: 2, input_tokens: 3 },
      { doc_id: 'script', unknown_tokens: 1, input_tokens: 1 },
    ]);
  });

  test('texts of every script and odd code points are taken as they are', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const texts = [
      '日本語の文章です。',
      'Слово за слово',
      'مرحبا بالعالم',
      '🪸🐙',
      'a\u0000b',
      '\ufeffbom',
      'e\u0301',
      '\ud800 lone surrogate',
    ];
    const documents = texts.map((text, position) => ({ doc_id: `t${position}`, text }));
    await put(client, id, documents);
    expect((await find(client, id, { query: '日本語', top_k: 1 })).results[0]?.doc_id).toBe('t0');
  });

  test('a text of 100 KiB of prose is stored whole', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const prose = passages.map((passage) => passage.text).join(' ');
    const text = `${prose} `.repeat(8).slice(0, 100 * 1024 - 200);
    const ending = ' The last words of this document speak of a pelican on a bicycle.';
    const stored = await put(client, id, [{ doc_id: 'long', text: text + ending }]);
    expect(stored.upserted_chunks).toBeGreaterThan(60);
    const { results } = await find(client, id, { query: 'pelican on a bicycle' });
    expect(results[0]?.chunk_index).toBe(stored.upserted_chunks - 1);
  });
});
