/**
 * `npm run bench -- loop`: whether the largest legal upserts hold up the event loops. Sends 50 documents of 100 KiB (real
 * text) in one request after another, for some seconds, and reads the 99th percentile of the event-loop delay of
 * the api process and of the encoder from `/metrics`; a client beside it measures what a search waits.
 */
import { closing, openTarget } from '../lib/service/target.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { scrape } from '../lib/service/metrics.ts';
import { integer } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { median, quantile } from '../lib/statistics.ts';
import { columns } from '../lib/table.ts';
import { cutToBytes, packageTexts } from '../lib/texts.ts';

const settings = {
  documents: integer(50, 'documents of one upsert'),
  kib: integer(100, 'KiB of each document'),
  seconds: integer(15, 'before the upserts and during them'),
};

export const loop = benchmark({
  name: 'loop',
  summary: 'whether the largest upserts hold up the event loops',
  settings,
  run,
  render,
});

interface LoopReport {
  readonly environment: Environment;
  readonly settings: Readonly<Record<'documents' | 'documentBytes' | 'seconds', number>>;
  /** Milliseconds: before the upserts and while they are in flight. */
  readonly idle: Delays;
  readonly loaded: Delays;
}

interface Delays {
  readonly api_p99_ms: number;
  readonly encoder_p99_ms: number;
  readonly search_p50_ms: number;
  readonly search_p99_ms: number;
}

/** prom-client's timer; its percentiles include the interval. */
const apiResolutionMs = 10;

async function run(options: OptionsOf<typeof settings>): Promise<LoopReport> {
  const documentBytes = options.kib * 1024;
  const target = await openTarget({
    texts: packageTexts(50),
    remote: undefined,
    environment: options.environment,
  });
  return closing([target], async () => {
    const headers = { authorization: `Bearer ${target.apiKey}`, 'content-type': 'application/json' };
    const send = async (path: string, body: string, signal?: AbortSignal): Promise<void> => {
      const response = await fetch(new URL(`/v1/indexes/${target.indexId}/${path}`, target.url), {
        method: 'POST',
        headers,
        body,
        ...(signal === undefined ? {} : { signal }),
      });
      await response.arrayBuffer();
    };
    const observe = async (seconds: number): Promise<Delays> => {
      await scrape(target.metricsUrl!);
      const waits: number[] = [];
      const until = performance.now() + seconds * 1000;
      while (performance.now() < until) {
        const started = performance.now();
        await send('search', JSON.stringify({ query: 'how is the event loop kept free' }));
        waits.push(performance.now() - started);
      }
      const metrics = await scrape(target.metricsUrl!);
      const secondsOf = (name: string): number => metrics.get(name) ?? Number.NaN;
      return {
        api_p99_ms: secondsOf('maxsimd_nodejs_eventloop_lag_p99_seconds') * 1000 - apiResolutionMs,
        encoder_p99_ms: secondsOf('maxsimd_encoder_loop_delay_p99_seconds{encoder="local-0"}') * 1000,
        search_p50_ms: median(waits),
        search_p99_ms: quantile(waits, 0.99),
      };
    };
    const idle = await observe(options.seconds);
    const body = upsertBody(options.documents, documentBytes);
    options.onProgress(`idle: ${JSON.stringify(idle)}; one body has ${body.length} bytes`);
    const ending = new AbortController();
    const over = AbortSignal.any([ending.signal, target.ended]);
    const upserts = (async () => {
      while (!over.aborted) await send('documents', body, ending.signal).catch(() => undefined);
    })();
    const loaded = await observe(options.seconds);
    ending.abort();
    await upserts;
    return {
      environment: describeEnvironment(options.command, 'auto', []),
      settings: {
        documents: options.documents,
        documentBytes,
        seconds: options.seconds,
      },
      idle,
      loaded,
    };
  });
}

function render({ idle, loaded }: LoopReport): string {
  const line = (cells: readonly string[]): string => `${columns(cells, { first: 12, others: 16 })}\n`;
  const row = (name: string, delays: Delays): string =>
    line([name, ...Object.values(delays).map((ms: number) => ms.toFixed(1))]);
  return line(['', ...Object.keys(idle)]) + row('idle', idle) + row('in flight', loaded);
}

function upsertBody(documents: number, documentBytes: number): string {
  const text = packageTexts(400).join(' ');
  return JSON.stringify({
    documents: Array.from({ length: documents }, (_, i) => ({
      doc_id: `long-${i}`,
      text: cutToBytes(text.repeat(2).slice(i * 1000), documentBytes),
    })),
  });
}
