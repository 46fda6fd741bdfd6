/** Passages from a metadata field, and fields of the metadata in results: additions of ours to the interface. */
import { beforeAll, describe, expect, test } from 'vitest';

import { expectInvalid, expectReply } from '../../../support/running/client.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { makeIndex, put } from '../../../support/running/requests.ts';
import { passages } from '../../../support/running/texts.ts';
import { queried, ranked, rankedByDocument, rankedWithPassages } from '../../../support/running/wire.ts';

const stage = await useContractStage();
const body = { from: 'body' };
const textOf = new Map(passages.map(({ subject, text }) => [subject, text]));

let library = '';
beforeAll(async () => {
  library = (await makeIndex(stage.client)).id;
  await put(
    stage.client,
    library,
    passages.map(({ subject, text }) => ({ doc_id: subject, text, metadata: { subject, body: text } })),
  );
});

type Passage = { readonly text: string; readonly start: number; readonly end: number };
const at = (docId: string, { start, end }: Passage): string =>
  Array.from(textOf.get(docId) ?? '')
    .slice(start, end)
    .join('');

describe('A search with `passage`', () => {
  test('answers with the text at the range of each chunk, and with whole words of the query', async () => {
    const asked = { query: 'wild yeasts and bacteria', passage: body, return_components: true };
    const { results } = expectReply(await stage.client.search(library, asked), rankedWithPassages);
    expect(results.length).toBeGreaterThan(0);
    for (const { doc_id: docId, passage, text_range: range } of results) {
      expect(passage!.text).toBe(at(docId, passage!));
      expect(passage!.start).toBeLessThanOrEqual(range!.start);
      expect(passage!.end).toBeGreaterThanOrEqual(range!.end);
      for (const highlight of passage!.highlights!) {
        expect(highlight.text).toBe(at(docId, highlight));
        expect(highlight.text).toMatch(/^[\p{L}\p{M}\p{N}\p{S}'’.]+$/u);
        expect(asked.query.split(' ')).toContain(highlight.query_word);
      }
    }
    expect(results[0]!.passage!.highlights!.length).toBeGreaterThan(0);
  });

  test('works in grouped searches, in several queries, and with a condition; `fields` limit the metadata alone', async () => {
    const asked = { query: 'wild yeasts', passage: { ...body, context: 1000 }, fields: ['subject'] };
    const grouped = { ...asked, group_by_document: true };
    const byDocument = expectReply(await stage.client.search(library, grouped), rankedByDocument);
    for (const { doc_id: docId, metadata, chunks } of byDocument.results) {
      expect(metadata).toEqual({ subject: docId });
      for (const { passage } of chunks) expect(passage!.text).toBe(at(docId, passage!));
    }
    const { results } = expectReply(
      await stage.client.query(library, [asked, grouped, { query: 'wild yeasts', fields: [] }]),
      queried,
    );
    expect(results[0]!.results.every((result) => 'passage' in result && result.passage !== null)).toBe(true);
    expect(results[1]!.results.flatMap((result) => ('chunks' in result ? result.chunks : []))).toEqual(
      byDocument.results.flatMap(({ chunks }) => chunks),
    );
    expect(results[2]!.results.map(({ metadata }) => metadata)).toEqual(results[2]!.results.map(() => ({})));
  });

  test('of a field that is absent or no string is null', async () => {
    const { results } = expectReply(
      await stage.client.search(library, { query: 'bread', passage: { from: 'absent' } }),
      rankedWithPassages,
    );
    expect(results.map(({ passage }) => passage)).toEqual(results.map(() => null));
  });

  test('without it no result has one', async () => {
    expectReply(await stage.client.search(library, { query: 'bread' }), ranked);
  });

  test.each([
    [{}, 'passage.from'],
    [{ from: '' }, 'passage.from'],
    [{ from: 'a'.repeat(256) }, 'passage.from'],
    [{ from: 1 }, 'passage.from'],
    [{ from: 'body', context: -1 }, 'passage.context'],
    [{ from: 'body', context: 1001 }, 'passage.context'],
    [{ from: 'body', context: 1.5 }, 'passage.context'],
    [{ from: 'body', more: 1 }, 'passage.more'],
    ['body', 'passage'],
  ])('refuses %j', async (passage, path) => {
    expectInvalid(await stage.client.search(library, { query: 'bread', passage }), path);
    expectInvalid(await stage.client.query(library, [{ query: 'bread', passage }]), `queries.0.${path}`);
  });

  test('refuses `fields` that repeat, are many or are no names', async () => {
    const search = (fields: unknown) => stage.client.search(library, { query: 'bread', fields });
    expectInvalid(await search(['a', 'a']), 'fields.1');
    expectInvalid(await search(Array.from({ length: 11 }, (_, place) => `f${place}`)), 'fields');
    expectInvalid(await search('a'), 'fields');
  });

  test('shows at most 1,000 passages a request', async () => {
    const query = { query: 'bread', top_k: 10, group_by_document: true, passage: body };
    const times = (length: number) => Array.from({ length }, () => query);
    expectReply(await stage.client.query(library, times(10)), queried);
    expectInvalid(await stage.client.query(library, times(11)), 'queries');
  });
});

describe('A score with `passage`', () => {
  const documents = [{ doc_id: 'a', text: '🎈 Honey bees dance.', metadata: { body: 'another text' } }];

  test('shows the submitted text', async () => {
    const asked = { query: 'bees', documents, passage: {}, return_components: true };
    const { results } = expectReply(await stage.client.score(asked), rankedWithPassages);
    expect(results[0]!.passage).toMatchObject({ text: '🎈 Honey bees dance.', start: 0, end: 19 });
  });

  test('refuses `from`', async () => {
    expectInvalid(await stage.client.score({ query: 'bees', documents, passage: body }), 'passage.from');
  });
});
