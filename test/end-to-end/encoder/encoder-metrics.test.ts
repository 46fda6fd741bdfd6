/** `/metrics` counts the work of the encoders, compared with known work. */
import { expect, test } from 'vitest';

import { expectReply } from '../../support/running/client.ts';
import { readMetric } from '../../support/running/server.ts';
import { useStage } from '../../support/running/stage.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { ranked } from '../../support/running/wire.ts';

const stage = useStage({ metrics: true });

test('the metrics tell each encoder’s queue, batches, padding, stages, provider and delays', async () => {
  const { client, server } = stage;
  const { id } = await makeIndex(client);
  await put(client, id, [
    { doc_id: 'light', text: 'light is a wave and a particle' },
    { doc_id: 'sound', text: 'sound is a wave' },
  ]);
  await find(client, id, { query: 'a wave' });
  expectReply(await client.score({ query: 'a wave', documents: [{ doc_id: 'x', text: 'water' }] }), ranked);
  const read = async (line: string): Promise<number> => readMetric(server, `maxsimd_${line}`);
  const encoder = 'encoder="local-0"';

  expect(await read(`encoder_info{${encoder},provider="cpu",device="cpu"}`)).toBe(1);
  expect(await read(`encoder_queue_tokens{${encoder}}`)).toBe(0);
  expect(await read(`encoder_queue_requests{${encoder}}`)).toBe(0);
  expect(await read(`encoder_batches_total{${encoder}}`)).toBeGreaterThan(2);
  const tokens = await read(`encoder_batch_tokens_total{${encoder}}`);
  const padded = await read(`encoder_batch_padded_tokens_total{${encoder}}`);
  expect(padded).toBeGreaterThanOrEqual(tokens);
  expect(await read(`encoder_padding_ratio{${encoder}}`)).toBeCloseTo(1 - tokens / padded, 10);
  for (const reason of ['rejected', 'expired', 'cancelled']) {
    expect(await read(`encoder_dropped_total{${encoder},reason="${reason}"}`)).toBe(0);
  }
  expect(await read(`encoder_resident_bytes{${encoder}}`)).toBeGreaterThan(1e7);
  expect(await read(`encoder_loop_delay_p99_seconds{${encoder}}`)).toBeGreaterThanOrEqual(0);
  for (const [kind, requests] of [
    ['query', 2],
    ['document', 3],
  ] as const) {
    for (const stageName of ['tokenize', 'queue', 'run', 'rows']) {
      const labels = `${encoder},kind="${kind}",stage="${stageName}"`;
      expect(await read(`encoder_stage_seconds_count{${labels}}`)).toBe(requests);
      expect(await read(`encoder_stage_seconds_bucket{${labels},le="+Inf"}`)).toBe(requests);
      expect(await read(`encoder_stage_seconds_bucket{${labels},le="0.0001"}`)).toBeLessThanOrEqual(requests);
    }
    const seconds = await read(`encoder_stage_seconds_sum{${encoder},kind="${kind}",stage="run"}`);
    expect(seconds).toBeGreaterThan(0);
  }
});
