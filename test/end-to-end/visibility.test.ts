/** A search that starts after an upsert's answer sees the upsert, while others write. */
import { describe, expect, test } from 'vitest';

import { expectReply } from '../support/running/client.ts';
import { announceRandom } from '../support/running/random.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { find, makeIndex, put } from '../support/running/requests.ts';
import { recombine, textOfTokens } from '../support/running/texts.ts';
import { deleted } from '../support/running/wire.ts';

const stage = useSharedStage();
const chunking = { max_tokens: 16, overlap_tokens: 0, minimum_chunk_tokens: 1 };

describe('Visibility', () => {
  test('a document is visible to every search that starts after the answer, and a deleted one to none', async () => {
    const random = announceRandom('visibility');
    const { client } = stage;
    const { id } = await makeIndex(client, { chunking });
    const write = async (writer: number): Promise<void> => {
      for (let step = 0; step < 40; step += 1) {
        const docId = `${writer}-${step % 7}`;
        const filter = { doc: docId };
        const uid = `${writer} ${step}`;
        await put(client, id, [
          { doc_id: docId, text: recombine(random, 20), metadata: { doc: docId, uid } },
        ]);
        const searches = Array.from({ length: 2 }, () =>
          find(client, id, { query: 'light', top_k: 100, filter }),
        );
        for (const { results } of await Promise.all(searches)) {
          expect(results.length).toBeGreaterThan(0);
          expect(new Set(results.map((result) => result.metadata['uid']))).toEqual(new Set([uid]));
        }
        if (random.next() < 0.3) {
          expectReply(await client.deleteDocument(id, docId), deleted);
          expect((await find(client, id, { query: 'light', filter })).results).toEqual([]);
        }
      }
    };
    await Promise.all(Array.from({ length: 4 }, (_, writer) => write(writer)));
  });

  test('a document is replaced whole: a search sees the old version or the new one, never both or neither', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, { chunking });
    // Versions differ in their number of chunks, so that a mixture shows.
    const chunksOf = (version: number): number => 1 + (version % 5);
    const replace = (version: number): Promise<unknown> =>
      put(client, id, [
        {
          doc_id: 'replaced',
          text: textOfTokens(16 * chunksOf(version)),
          metadata: { doc: 'replaced', version },
        },
      ]);
    await replace(0);
    let acknowledged = 0;
    const load = { running: true };
    const seen = new Set<number>();
    const search = async (filter: Readonly<Record<string, unknown>>): Promise<void> => {
      while (load.running) {
        const oldest = acknowledged;
        const { results } = await find(client, id, { query: 'river', top_k: 100, filter });
        const versions = [...new Set(results.map((result) => Number(result.metadata['version'])))];
        expect(versions).toHaveLength(1);
        const [version = -1] = versions;
        expect(version).toBeGreaterThanOrEqual(oldest);
        const chunks = results.map((result) => result.chunk_index).toSorted((left, right) => left - right);
        expect(chunks).toEqual(Array.from({ length: chunksOf(version) }, (_, chunk) => chunk));
        seen.add(version);
      }
    };
    const searches = Promise.all([search({ doc: 'replaced' }), search({ doc: 'replaced' }), search({})]);
    try {
      for (let version = 1; version <= 60; version += 1) {
        await replace(version);
        acknowledged = version;
      }
    } finally {
      load.running = false;
      await searches;
    }
    expect(seen.size).toBeGreaterThan(5);
  });

  test('writers of one document at the same time leave one of their versions, whole', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, { chunking });
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(
        Array.from({ length: 6 }, (_, writer) =>
          put(client, id, [
            { doc_id: 'contested', text: textOfTokens(16 * (writer + 1)), metadata: { writer: writer + 1 } },
          ]),
        ),
      );
      const { results } = await find(client, id, { query: 'river', top_k: 100 });
      const writers = new Set(results.map((result) => result.metadata['writer']));
      expect(writers.size).toBe(1);
      expect(results).toHaveLength(Number([...writers][0]));
    }
  });

  test('an upsert into an index that is deleted meanwhile is stored nowhere', async () => {
    const { client } = stage;
    for (let round = 0; round < 5; round += 1) {
      const { id } = await makeIndex(client);
      const documents = Array.from({ length: 20 }, (_, position) => ({
        doc_id: `d${position}`,
        text: textOfTokens(60),
      }));
      const [upsert, removal] = await Promise.all([
        client.upsert(id, documents),
        client.send('DELETE', `/v1/indexes/${id}`),
      ]);
      expect(removal.status).toBe(200);
      expect([200, 404]).toContain(upsert.status);
      expect((await client.search(id, { query: 'river' })).status).toBe(404);
    }
  });
});
