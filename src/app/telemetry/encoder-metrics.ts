/** Metrics of each encoder. Each scrape asks the encoders for them. */
import type { Metrics, Sample } from '../../observation/metrics.ts';
import type { Encoders } from '../encoders.ts';

type Reported = Awaited<ReturnType<Encoders['statistics']>>[number];

export function registerEncoderMetrics(metrics: Metrics, encoders: Pick<Encoders, 'statistics'>): void {
  const reported = sharedWithinScrape(() => encoders.statistics());
  const labelNames = ['encoder'];
  const each = (pick: (encoder: Reported) => number) => async (): Promise<readonly Sample[]> =>
    (await reported()).map((encoder) => ({ labels: { encoder: encoder.name }, value: pick(encoder) }));
  const gauge = (name: string, help: string, pick: (encoder: Reported) => number): void =>
    metrics.registerGauge({ name, help, labelNames }, each(pick));
  const counter = (name: string, help: string, pick: (encoder: Reported) => number): void =>
    metrics.registerCounter({ name, help, labelNames }, each(pick));

  gauge('encoder_queue_tokens', 'Tokens that wait to be encoded.', ({ queuedTokens }) => queuedTokens);
  gauge('encoder_queue_requests', 'Requests that wait for an answer.', (encoder) => encoder.queuedRequests);
  counter('encoder_batches_total', 'Batches run for callers.', ({ batches }) => batches);
  counter('encoder_batch_tokens_total', 'Tokens of the texts in batches.', ({ tokens }) => tokens);
  counter(
    'encoder_batch_padded_tokens_total',
    'Computed positions of batches, padding included.',
    ({ paddedTokens }) => paddedTokens,
  );
  gauge('encoder_padding_ratio', 'Share of padding in all computed positions.', ({ tokens, paddedTokens }) =>
    paddedTokens === 0 ? 0 : 1 - tokens / paddedTokens,
  );
  gauge(
    'encoder_tokens_per_second',
    'Rate of a full queue, estimated.',
    (encoder) => encoder.tokensPerSecond,
  );
  gauge(
    'encoder_loop_delay_p99_seconds',
    '99th percentile of the event-loop delay of the encoder over the last 10 to 20 s.',
    ({ loopDelayP99Ms }) => loopDelayP99Ms / 1000,
  );
  gauge('encoder_resident_bytes', 'Resident memory of the encoder.', ({ residentBytes }) => residentBytes);
  metrics.registerCounter(
    {
      name: 'encoder_dropped_total',
      help: 'Requests that never ran: the queue was full or too long (`rejected`), the deadline passed, or the caller left.',
      labelNames: ['encoder', 'reason'],
    },
    async () =>
      (await reported()).flatMap((encoder) =>
        (['rejected', 'expired', 'cancelled'] as const).map((reason) => ({
          labels: { encoder: encoder.name, reason },
          value: encoder[reason],
        })),
      ),
  );
  metrics.registerGauge(
    {
      name: 'encoder_info',
      help: 'Execution provider and device in use (value 1).',
      labelNames: ['encoder', 'provider', 'device'],
    },
    async () =>
      (await reported()).map(({ name, provider, deviceId }) => ({
        labels: { encoder: name, provider, device: provider === 'cpu' ? 'cpu' : String(deviceId) },
        value: 1,
      })),
  );
  metrics.registerHistogram(
    {
      name: 'encoder_stage_seconds',
      help: 'Time of queries and documents in the stages of the encoder.',
      labelNames: ['encoder', 'kind', 'stage'],
    },
    async () =>
      (await reported()).flatMap((encoder) =>
        encoder.stages.map(({ kind, stage, counts, sumMs }) => ({
          labels: { encoder: encoder.name, kind, stage },
          bounds: encoder.stageBoundsMs.map((ms) => ms / 1000),
          counts,
          sum: sumMs / 1000,
        })),
      ),
  );
}

/** The readings of one scrape share one answer. */
function sharedWithinScrape<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };
}
