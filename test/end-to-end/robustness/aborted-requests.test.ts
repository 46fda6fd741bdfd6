/**
 * A thousand requests whose clients go away while they send, wait or read: nothing of them stays, neither
 * tokens, slots nor memory, and nothing that others asked for changes.
 */
import { expect, test } from 'vitest';

import { abandon, type Moment } from '../../support/network/abandon.ts';
import { eventually } from '../../support/running/eventually.ts';
import { readMetric } from '../../support/running/server.ts';
import { announceRandom, type Random } from '../../support/running/random.ts';
import { useStage } from '../../support/running/stage.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { passages, recombine, textOfTokens } from '../../support/running/texts.ts';

/** The heap of every process of the service; what a thousand of these requests hold, were it kept, is more than twice as much. */
const heapMegabytes = 112;
const residentGrowthMax = 200e6;
const requests = 1000;
const atOnce = 50;

const stage = useStage({
  metrics: true,
  env: { NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}` },
});

test('a thousand aborted requests leave nothing behind', async () => {
  const random = announceRandom('aborted requests');
  const { client } = stage;
  const { id: library } = await makeIndex(client);
  await put(client, library, passages.map(asDocument));
  const ask = async (): Promise<unknown> => {
    const found = await find(client, library, { query: passages[0]!.question, top_k: 20 });
    const scored = await client.score({ query: 'light', documents: passages.map(asDocument) });
    return [found.results, (scored.body as { readonly results: unknown }).results];
  };
  const before = await ask();

  const slots = atOnce + 5;
  const tenant = await stage.newTenant({
    requestsPerMinute: 1_000_000,
    maxConcurrentRequests: slots,
    inputTokens: 1_000_000_000,
  });
  const { id } = await makeIndex(tenant.client);
  const residentBefore = await readMetric(stage.server, 'maxsimd_process_resident_memory_bytes');
  const long = recombine(random, 6000);
  let left = requests;
  let answered = 0;
  const leaving = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const { path, body, moments } = requestOf(random, id, long);
      if (await abandon(tenant.client, path, body, random.pick(moments))) answered += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, leaving));

  // Some were left in the middle of their answer, most before it.
  expect(answered).toBeGreaterThan(0);
  expect(answered).toBeLessThan(requests / 2);
  console.log(`${answered} of ${requests} answers had begun`);

  // Nothing is in flight, in the front end as in the encoder.
  for (const gauge of [
    'maxsimd_http_requests_in_flight',
    'maxsimd_requests_admitted',
    'maxsimd_encoder_queue_tokens',
    'maxsimd_encoder_queue_requests',
  ]) {
    await eventually(async () => (await readMetric(stage.server, gauge)) === 0);
  }

  // Every slot is free.
  const together = await Promise.all(
    Array.from({ length: slots }, () => tenant.client.search(id, { query: 'light' })),
  );
  expect(together.map(({ status }) => status)).toEqual(Array.from({ length: slots }, () => 200));

  // Every token that was not charged can be spent: the allowance is cut down to five more, and five are used.
  const { usage } = await readUsage(tenant.client);
  const allowance = BigInt(usage.input_tokens) + 5n;
  await stage.operate('tenant', 'limits', tenant.id, '--input-tokens', String(allowance));
  await eventually(async () => (await readUsage(tenant.client)).remaining.input_tokens === '5', {
    everyMs: 100,
  });
  await put(tenant.client, id, [{ doc_id: 'last', text: textOfTokens(5) }]);

  // A document that was committed before its client left is whole, and the answers to others did not change.
  expect((await readUsage(tenant.client)).usage.documents).toBe(usage.documents + 1);
  expect(await ask()).toEqual(before);
  const resident = await readMetric(stage.server, 'maxsimd_process_resident_memory_bytes');
  console.log(`resident ${megabytes(residentBefore)} before, ${megabytes(resident)} after`);
  expect(resident - residentBefore).toBeLessThan(residentGrowthMax);
});

interface Abandoned {
  readonly path: string;
  readonly body: unknown;
  readonly moments: readonly Moment[];
}

function requestOf(random: Random, indexId: string, long: string): Abandoned {
  const documents = [1, 2, 3].map((number) => ({
    doc_id: `document ${random.integer(0, 500)} ${number}`,
    text: long,
  }));
  const query = random.pick(passages).question;
  const moments: readonly Moment[] = [
    { kind: 'sending' },
    { kind: 'waiting', afterMs: random.integer(0, 30) },
    { kind: 'waiting', afterMs: random.integer(0, 200) },
  ];
  return random.pick<Abandoned>([
    { path: `/v1/indexes/${indexId}/search`, body: { query }, moments: [...moments, { kind: 'reading' }] },
    { path: `/v1/indexes/${indexId}/documents`, body: { documents }, moments },
    { path: '/v1/score', body: { query, documents }, moments },
  ]);
}

function asDocument({ subject, text }: { readonly subject: string; readonly text: string }): {
  readonly doc_id: string;
  readonly text: string;
} {
  return { doc_id: subject, text };
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
