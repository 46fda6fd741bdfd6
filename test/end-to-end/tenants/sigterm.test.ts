/**
 * SIGTERM under load, again and again on one data directory: every answer that begins is whole, the process ends with
 * exit code 0, and what was acknowledged is there after the next start.
 */
import { afterAll, expect, test } from 'vitest';

import { rounds } from '../../rounds.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { CutAnswer, openExact } from '../../support/running/exact-answer.ts';
import { eventually, pause } from '../../support/running/eventually.ts';
import { announceRandom } from '../../support/running/random.ts';
import { makeScratch } from '../../support/running/launch.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { connect, expectReply } from '../../support/running/client.ts';
import { makeIndex } from '../../support/running/requests.ts';
import { recombine } from '../../support/running/texts.ts';
import { deleted, upserted } from '../../support/running/wire.ts';

const callers = 8;
const signals = rounds({ short: 1, nightly: 100 });

test(`${signals} times SIGTERM under load: whole answers, exit code 0, nothing lost`, async () => {
  const random = announceRandom('SIGTERM under load');
  const scratch = await makeScratch();
  afterAll(() => scratch.remove());
  let server = await startServer({ scratch });
  const { key } = await createTenant(server);
  const { id } = await makeIndex(connect(server.url, key));
  let documents = 0;
  const statuses: Record<string, number> = {};
  const answered = (): number => statuses['200'] ?? 0;

  /** Sends one request after another until the server takes no more; gives back what was acknowledged. */
  async function callUntilGone({ url }: ServerProcess, place: number): Promise<readonly string[]> {
    using connection = openExact();
    const acknowledged: string[] = [];
    for (;;) {
      documents += 1;
      const docId = `d${documents}`;
      const text = recombine(random, 40);
      const [path, body] = (
        [
          [`/v1/indexes/${id}/documents`, { documents: [{ doc_id: docId, text }] }],
          [`/v1/indexes/${id}/search`, { query: text, top_k: 100 }],
          ['/v1/score', { query: 'river', documents: [{ doc_id: 'a', text }] }],
          ['/v1/indexes', undefined],
        ] as const
      )[place % 4]!;
      try {
        const method = body === undefined ? 'GET' : 'POST';
        const answer = await connection.send({
          url: `${url}${path}`,
          method,
          key,
          body: JSON.stringify(body),
        });
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        const parsed: unknown = JSON.parse(answer.body);
        if (answer.status === 200 && place % 4 === 0) {
          upserted.parse(parsed);
          acknowledged.push(docId);
        }
      } catch (error) {
        if (error instanceof CutAnswer || error instanceof SyntaxError) throw error;
        // Refused, or closed before the answer began: the request was not taken.
        return acknowledged;
      }
    }
  }

  for (let round = 0; round < signals; round += 1) {
    const calling = Array.from({ length: callers }, (_, place) => callUntilGone(server, place));
    // A busy machine may take longer than the pause for the first answer.
    const before = answered();
    await eventually(() => answered() > before);
    await pause(random.integer(0, 1500));
    const exit = server.stop();
    const acknowledged = (await Promise.all(calling)).flat();
    expect(await exit).toEqual({ code: 0, signal: null });
    server = await startServer({ scratch });
    const client = connect(server.url, key);
    for (const docId of acknowledged) {
      const reply = expectReply(await client.deleteDocument(id, docId), deleted);
      expect([docId, reply.deleted]).toEqual([docId, true]);
    }
  }
  expect(await server.stop()).toEqual({ code: 0, signal: null });
  console.log(`answers by status: ${JSON.stringify(statuses)}`);
  expect(Object.keys(statuses).filter((status) => !['200', '503'].includes(status))).toEqual([]);
  expect(answered()).toBeGreaterThan(signals);
}, 7_200_000);
