/** The largest legal upserts, one after another, do not hold up the event loops of the api process and of the encoder. */
import { afterAll, expect, it } from 'vitest';
import { scrape } from '../../bench/lib/service/metrics.ts';
import { median, quantile } from '../../bench/lib/statistics.ts';
import { markdownTable } from '../../bench/lib/table.ts';
import { cutToBytes, packageTexts } from '../../bench/lib/texts.ts';
import { documentsMax, textBytesMax } from '../../src/http/limits.ts';
import { rounds } from '../rounds.ts';
import { useStage } from '../support/running/stage.ts';
import { makeIndex, put } from '../support/running/requests.ts';

const seconds = rounds({ short: 4, nightly: 15 });
const delayMsMax = rounds({ short: 1000, nightly: 20 });
/** The period of the timer of the metric of the api process, whose percentiles include it. */
const apiPeriodMs = 10;

const stage = useStage({ metrics: true });
const table: string[][] = [];
afterAll(() => {
  const header = ['', 'api p99 ms', 'encoder p99 ms', 'search p50 ms', 'search p99 ms'];
  console.log(markdownTable(header, table).join('\n'));
});

it(`the 99th percentile of their delay stays below ${delayMsMax} ms`, { timeout: 300_000 }, async () => {
  const { id } = await makeIndex(stage.client);
  const texts = packageTexts(400);
  await put(
    stage.client,
    id,
    texts.slice(0, documentsMax).map((text, n) => ({ doc_id: `d${n}`, text })),
  );
  const text = texts.join(' ').repeat(2);
  const documents = Array.from({ length: documentsMax }, (_, n) => ({
    doc_id: `long-${n}`,
    text: cutToBytes(text.slice(n * 1000), textBytesMax),
  }));
  const rawBody = JSON.stringify({ documents });

  await observe('idle', id);
  const ending = new AbortController();
  const upserts = (async () => {
    const path = `/v1/indexes/${id}/documents`;
    while (!ending.signal.aborted)
      await stage.client
        .send('POST', path, { rawBody, signal: ending.signal, withinMs: 300_000 })
        .catch(() => undefined);
  })();
  const { apiMs, encoderMs } = await observe('during upserts', id);
  ending.abort();
  await upserts;
  expect(apiMs).toBeLessThan(delayMsMax);
  expect(encoderMs).toBeLessThan(delayMsMax);
});

async function observe(name: string, indexId: string) {
  const metricsUrl = stage.server.metricsUrl!;
  // Reading the metrics begins their next interval.
  await scrape(metricsUrl);
  const waits: number[] = [];
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    const started = performance.now();
    await stage.client.search(indexId, { query: 'how is the event loop kept free' });
    waits.push(performance.now() - started);
  }
  const metrics = await scrape(metricsUrl);
  const apiMs = 1000 * metrics.get('maxsimd_nodejs_eventloop_lag_p99_seconds')! - apiPeriodMs;
  const encoderMs = 1000 * metrics.get('maxsimd_encoder_loop_delay_p99_seconds{encoder="local-0"}')!;
  table.push([name, ...[apiMs, encoderMs, median(waits), quantile(waits, 0.99)].map((ms) => ms.toFixed(1))]);
  return { apiMs, encoderMs };
}
