/**
 * Texts that the model cannot encode, in the real server: a document stands in `failed`, the others of its batch are
 * stored; a query refuses its request. The model is a real one with words that it cannot encode, one of them to the whole
 * encoder process.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { makeFailingModel, type FailingModel } from '../../support/encoder/failing-model.ts';
import { expectInvalid, expectReply, type Client } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { type ServerProcess, readMetric, startServer } from '../../support/running/server.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { upserted } from '../../support/running/wire.ts';

const query = 'late interaction';
const words = [
  ['failing', 'the model cannot encode this text'],
  ['spoiling', 'the model cannot encode this text'],
  ['crashing', 'the encoder ends when it runs this text'],
] as const;

describe('an unencodable text', () => {
  let model: FailingModel;
  let server: ServerProcess;
  let client: Client;

  beforeAll(async () => {
    model = await makeFailingModel();
    server = await startServer({
      metrics: true,
      // Three starts of an encoder take their time on a busy machine.
      constants: { encoderWaitMs: 20_000 },
      env: {
        MAXSIMD_MODELS_DIR: path.resolve(model.directory, '../..'),
        MAXSIMD_MODEL: 'colbert-tiny/1',
        MAXSIMD_ENCODER_THREADS: '1',
        NODE_OPTIONS: model.nodeOptions,
        MAXSIMD_TIMEOUT_SEARCH_MS: '60000',
      },
    });
    ({ client } = await createTenant(server));
  });

  afterAll(async () => {
    await server?.stop();
    await server?.scratch.remove();
  });

  const batch = (word: string): { doc_id: string; text: string }[] => [
    { doc_id: 'first', text: 'the late interaction' },
    { doc_id: 'unencodable', text: `token vectors ${word}` },
    { doc_id: 'last', text: 'every document' },
  ];

  test.each(words)('that is a %s query refuses its request, uncharged', async (kind, message) => {
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'one', text: 'interaction' }]);
    const before = (await readUsage(client)).usage;
    const unencodable = `token ${model.words[kind]}`;
    const replies = [await client.search(id, { query: unencodable })];
    if (kind !== 'crashing') {
      replies.push(
        await client.score({ query: unencodable, documents: [{ doc_id: 'one', text: 'interaction' }] }),
      );
    }
    for (const reply of replies) {
      const { issues } = expectInvalid(reply, 'query');
      expect(issues).toEqual([{ path: 'query', code: 'text_not_encodable', message }]);
    }
    const after = (await readUsage(client)).usage;
    expect(after).toEqual({ ...before, requests: after.requests });
    const { results } = await find(client, id, { query, top_k: 10 });
    expect(results.map(({ doc_id: docId }) => docId)).toEqual(['one']);
  });

  test.each(words)(
    'that is a %s document stands in `failed`, the others are stored and charged',
    async (kind, error) => {
      const { id } = await makeIndex(client);
      await put(client, id, [{ doc_id: 'unencodable', text: 'interaction', metadata: { version: 'old' } }]);
      const before = (await readUsage(client)).usage;
      const reply = expectReply(await client.upsert(id, batch(model.words[kind])), upserted);
      expect(reply).toMatchObject({
        upserted_documents: 2,
        upserted_chunks: 2,
        failed: [{ doc_id: 'unencodable', error }],
        usage: { input_tokens: 5, document_count: 2 },
      });
      const { results } = await find(client, id, { query, top_k: 10 });
      // The document that was stored under the id of the failed one is unchanged.
      expect(Object.fromEntries(results.map(({ doc_id: docId, metadata }) => [docId, metadata]))).toEqual({
        first: {},
        last: {},
        unencodable: { version: 'old' },
      });
      const after = (await readUsage(client)).usage;
      expect(after.documents - before.documents).toBe(2);
      expect(BigInt(after.input_tokens) - BigInt(before.input_tokens)).toBe(5n + 2n);
    },
  );

  test.each(['failing', 'spoiling'] as const)(
    'that is a %s document refuses a score, which has no place for it, and names it',
    async (kind) => {
      const reply = await client.score({ query, documents: batch(model.words[kind]) });
      const { issues } = expectInvalid(reply, 'documents.1.text');
      expect(issues?.[0]?.code).toBe('text_not_encodable');
    },
  );

  test('leaves no request and no slot behind', async () => {
    expect(await readMetric(server, 'maxsimd_http_requests_in_flight')).toBe(0);
    expect(await readMetric(server, 'maxsimd_requests_admitted')).toBe(0);
  });
});
