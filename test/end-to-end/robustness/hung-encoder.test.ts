/** An encoder that hangs (SIGSTOP): requests end by their deadline, the process is replaced, results are the same. */
import { expect, test } from 'vitest';

import { expectError, expectReply } from '../../support/running/client.ts';
import { eventually } from '../../support/running/eventually.ts';
import { readMetric } from '../../support/running/server.ts';
import { encodersOf, isAlive } from '../../support/running/processes.ts';
import { useStage } from '../../support/running/stage.ts';
import { find, makeIndex, put, readUsage, sendLong } from '../../support/running/requests.ts';
import { passages, textOfTokens } from '../../support/running/texts.ts';
import { ranked } from '../../support/running/wire.ts';

const deadlineMs = 4000;
const stage = useStage({
  metrics: true,
  env: { MAXSIMD_TIMEOUT_SEARCH_MS: String(deadlineMs), MAXSIMD_TIMEOUT_UPSERT_MS: String(deadlineMs) },
});

test('while the encoder hangs every request is 503 by its deadline; then it is replaced', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  const documents = passages.slice(0, 10).map(({ subject, text }) => ({ doc_id: subject, text }));
  await put(client, id, documents);
  const { question } = passages[2]!;
  const before = (await find(client, id, { query: question })).results;
  const narrow = await stage.newTenant({ requestsPerMinute: 100_000, maxConcurrentRequests: 1 });
  const { id: narrowIndex } = await makeIndex(narrow.client);
  const long = Array.from({ length: 50 }, (_, i) => ({ doc_id: `long ${i}`, text: textOfTokens(4000) }));

  const running = await sendLong(narrow.client, () => narrow.client.upsert(narrowIndex, long));
  const [encoder] = await encodersOf(stage.server.pid);
  process.kill(encoder!.pid, 'SIGSTOP');
  const started = performance.now();
  const replies = await Promise.all([
    running.reply,
    ...Array.from({ length: 8 }, () => client.search(id, { query: question })),
    client.score({ query: question, documents }),
    client.upsert(id, documents),
  ]);
  expect(performance.now() - started).toBeLessThan(2 * deadlineMs);
  for (const reply of replies) {
    expectError(reply, 503, 'service_unavailable');
    expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  }
  expect((await client.send('GET', '/healthz')).status).toBe(200);
  const { usage } = await readUsage(narrow.client);
  expect(usage).toMatchObject({ documents: 0, document_upserts: 0, input_tokens: '0' });

  const healed = await eventually(
    async () => {
      const reply = await client.search(id, { query: question });
      return reply.status === 200 ? reply : undefined;
    },
    { everyMs: 100 },
  );
  expect(expectReply(healed, ranked).results).toEqual(before);
  expect(await isAlive(encoder!.pid)).toBe(false);
  expect(stage.server.output().stderr).toMatch(/does not answer for \d+ ms; killing it/);
  expect(await readMetric(stage.server, 'maxsimd_http_requests_in_flight')).toBe(0);
  expect(await readMetric(stage.server, 'maxsimd_requests_admitted')).toBe(0);
});
