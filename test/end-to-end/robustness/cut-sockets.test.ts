/** Connections to a remote encoder that break in the middle of its replies: a whole answer or 503, never a part of one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { expectError, expectReply, type Client, type Reply } from '../../support/running/client.ts';
import { createTenant } from '../../support/running/command-line.ts';
import { startCuttingProxy, type CuttingProxy } from '../../support/network/cutting-proxy.ts';
import { startEncoderProcess, type EncoderProcess } from '../../support/running/encoder-process.ts';
import { eventually } from '../../support/running/eventually.ts';
import { type ServerProcess, readMetric, startServer } from '../../support/running/server.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/stage.ts';
import { passages } from '../../support/running/texts.ts';
import { ranked, upserted } from '../../support/running/wire.ts';

const documents = passages.slice(0, 20).map(({ subject, text }) => ({ doc_id: subject, text }));
const query = passages[3]!.question;
/** From the first byte of a frame's header to the last parts of the replies below (some 8 KB and 200 KB). */
const searchCuts = [0, 1, 8, 30, 100, 1000, 2000, 4000];
const documentCuts = [0, 9, 100, 1000, 10_000, 40_000, 80_000, 120_000];

describe('connections to an encoder that are cut in the middle of a reply', () => {
  let encoder: EncoderProcess;
  let proxy: CuttingProxy;
  let server: ServerProcess;
  let client: Client;
  let library = '';

  beforeAll(async () => {
    encoder = await startEncoderProcess();
    proxy = await startCuttingProxy(encoder.address);
    server = await startServer({ metrics: true, env: { MAXSIMD_ENCODERS: proxy.address } });
    ({ client } = await createTenant(server));
    ({ id: library } = await makeIndex(client));
    await put(client, library, documents);
  });

  afterAll(async () => {
    await server?.stop();
    await server?.scratch.remove();
    await proxy?.close();
    await encoder?.kill();
  });

  const search = (): Promise<Reply> => client.search(library, { query, top_k: 20 });
  const score = (): Promise<Reply> => client.score({ query, documents });

  /** Sends the request once for every cut; gives back the whole answers. */
  async function underCuts(cuts: readonly number[], send: () => Promise<Reply>): Promise<readonly Reply[]> {
    const whole: Reply[] = [];
    for (const bytes of cuts) {
      const before = proxy.cuts();
      proxy.cutOnceAfter(bytes);
      const started = performance.now();
      const reply = await send();
      expect(performance.now() - started).toBeLessThan(30_000);
      if (reply.status === 200) whole.push(reply);
      else expectError(reply, 503, 'service_unavailable');
      expect(proxy.cuts(), `the reply is longer than ${bytes} bytes`).toBe(before + 1);
    }
    // One cut costs one try of several.
    expect(whole.length).toBeGreaterThan(cuts.length / 2);
    return whole;
  }

  test('searches and scores are those of whole connections', async () => {
    const found = expectReply(await search(), ranked).results;
    const scored = expectReply(await score(), ranked).results;
    for (const reply of await underCuts(searchCuts, search)) {
      expect(expectReply(reply, ranked).results).toEqual(found);
    }
    for (const reply of await underCuts(documentCuts, score)) {
      expect(expectReply(reply, ranked).results).toEqual(scored);
    }
  });

  test('every document is stored and charged once or not at all', async () => {
    const { id } = await makeIndex(client);
    const before = (await readUsage(client)).usage;
    const answers = (await underCuts(documentCuts, () => client.upsert(id, documents))).map((reply) =>
      expectReply(reply, upserted),
    );
    const after = (await readUsage(client)).usage;
    expect(after.documents - before.documents).toBe(documents.length);
    expect(after.document_upserts - before.document_upserts).toBe(answers.length * documents.length);
    const tokens = answers.reduce((sum, { usage }) => sum + usage.input_tokens, 0);
    expect(Number(BigInt(after.input_tokens) - BigInt(before.input_tokens))).toBe(tokens);
    const scores = async (indexId: string): Promise<unknown> =>
      (await find(client, indexId, { query, top_k: 20 })).results.map(({ doc_id, score: value }) => [
        doc_id,
        value,
      ]);
    expect(await scores(id)).toEqual(await scores(library));
  });

  test('that never lives longer: 503 soon, and all is well once it does', async () => {
    const found = expectReply(await search(), ranked).results;
    proxy.cutAlwaysAfter(60);
    const started = performance.now();
    for (const reply of await Promise.all([search(), score(), client.upsert(library, documents)])) {
      expectError(reply, 503, 'service_unavailable');
    }
    expect(performance.now() - started).toBeLessThan(30_000);
    proxy.stopCutting();
    const healed = await eventually(async () => {
      const reply = await search();
      return reply.status === 200 ? reply : undefined;
    });
    expect(expectReply(healed, ranked).results).toEqual(found);
    expect(await readMetric(server, 'maxsimd_http_requests_in_flight')).toBe(0);
    expect(await readMetric(server, 'maxsimd_requests_admitted')).toBe(0);
  });
});
