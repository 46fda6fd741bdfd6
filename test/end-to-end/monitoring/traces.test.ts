/** Traces of real requests, as a collector receives them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  startTraceCollector,
  type ReceivedSpan,
  type TraceCollector,
} from '../../support/network/trace-collector.ts';
import { call, type Client, type Reply } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { eventually } from '../../support/running/eventually.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { makeIndex } from '../../support/running/requests.ts';

const callerSpanId = 'b7ad6b7169203331';

/** A trace of the caller's, by a number. */
function traceOf(number: number): string {
  return number.toString(16).padStart(32, 'a');
}

function parentHeader(traceId: string, flags: '00' | '01'): Readonly<Record<string, string>> {
  return { traceparent: `00-${traceId}-${callerSpanId}-${flags}` };
}

/** Log lines of requests. */
function requestLines(server: ServerProcess): readonly Readonly<Record<string, unknown>>[] {
  return server
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('A collector', () => {
  let collector: TraceCollector;
  let server: ServerProcess;
  let client: Client;
  let indexId: string;

  beforeAll(async () => {
    collector = await startTraceCollector();
    server = await startServer({
      sharedEncoder: true,
      metrics: true,
      env: { MAXSIMD_TRACES_URL: collector.url, OTEL_EXPORTER_OTLP_TIMEOUT: '500' },
    });
    ({ client } = await createTenant(server));
    indexId = (await makeIndex(client)).id;
  });

  afterAll(async () => {
    await server.stop();
    await server.scratch.remove();
    await collector[Symbol.asyncDispose]();
  });

  const upsert = (headers: Readonly<Record<string, string>>): Promise<Reply> =>
    client.send('POST', `/v1/indexes/${indexId}/documents`, {
      headers,
      body: { documents: [{ doc_id: 'bee', text: 'Honey bees dance.' }] },
    });
  const search = (headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
    client.send('POST', `/v1/indexes/${indexId}/search`, { headers, body: { query: 'insects' } });

  /** The spans of a trace, once its request's is there: it is the last. */
  async function received(traceId: string): Promise<readonly ReceivedSpan[]> {
    return eventually(() => {
      const spans = collector.spans().filter((span) => span.traceId === traceId);
      return spans.some(({ kind }) => kind === 2) ? spans : undefined;
    });
  }

  /** Names under names. */
  function treeOf(spans: readonly ReceivedSpan[], parentSpanId: string): unknown {
    const children = spans.filter((span) => span.parentSpanId === parentSpanId);
    return Object.fromEntries(children.map(({ name, spanId }) => [name, treeOf(spans, spanId)]));
  }

  test('sees an upsert and its stages under the caller’s span', async () => {
    const traceId = traceOf(1);
    const reply = await upsert({ ...parentHeader(traceId, '01'), 'x-request-id': 'upsert-1' });
    expect(reply.status).toBe(200);
    const spans = await received(traceId);
    expect(treeOf(spans, callerSpanId)).toEqual({
      'POST /v1/indexes/:index_id/documents': {
        admission: {},
        body: {},
        service: {
          index: {},
          encode: { encoder_tokenize: {}, encoder_queue: {}, encoder_run: {}, encoder_rows: {} },
          append: {},
          commit: { sync: {} },
        },
        answer: {},
      },
    });
    const request = spans.find(({ kind }) => kind === 2);
    expect(request).toMatchObject({
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/v1/indexes/:index_id/documents',
        'http.response.status_code': 200,
        'maxsimd.request_id': 'upsert-1',
        'maxsimd.tenant_id': expect.any(String),
      },
      resource: { 'service.name': 'maxsimd', 'service.version': expect.stringMatching(/^\d/) },
    });
    const line = requestLines(server).find(({ request_id: id }) => id === 'upsert-1');
    expect(line).toMatchObject({ trace_id: traceId, request_id: 'upsert-1' });
  });

  test('sees a search and its stages under the caller’s span, each within the time of its parent', async () => {
    const traceId = traceOf(2);
    const sentAtMs = Date.now();
    expect((await search(parentHeader(traceId, '01'))).status).toBe(200);
    const answeredAtMs = Date.now();
    const spans = await received(traceId);
    expect(treeOf(spans, callerSpanId)).toEqual({
      'POST /v1/indexes/:index_id/search': {
        admission: {},
        body: {},
        service: {
          index: {},
          encode: { encoder_tokenize: {}, encoder_queue: {}, encoder_run: {}, encoder_rows: {} },
          engine: { engine_queue: {}, engine_filter: {}, engine_candidates: {}, engine_exact: {} },
          resolve: {},
          usage: {},
        },
        answer: {},
      },
    });
    const msOf = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1000n) / 1000;
    for (const { name, startTimeUnixNano, endTimeUnixNano, parentSpanId } of spans) {
      const parent = spans.find(({ spanId }) => spanId === parentSpanId);
      // Clocks of a millisecond's grain, and parts whose times were rounded by another process.
      const startMsMin = (parent === undefined ? sentAtMs : msOf(parent.startTimeUnixNano)) - 1;
      const endMsMax = (parent === undefined ? answeredAtMs + 50 : msOf(parent.endTimeUnixNano)) + 1;
      expect(msOf(startTimeUnixNano), name).toBeGreaterThanOrEqual(startMsMin);
      expect(msOf(endTimeUnixNano), name).toBeLessThanOrEqual(endMsMax);
      expect(msOf(endTimeUnixNano), name).toBeGreaterThanOrEqual(msOf(startTimeUnixNano));
    }
  });

  test('sees a trace that begins here when the caller has none, by the id in the log line', async () => {
    expect((await search({ 'x-request-id': 'mine' })).status).toBe(200);
    const line = await eventually(() => requestLines(server).find(({ request_id: id }) => id === 'mine'));
    const spans = await received(String(line['trace_id']));
    expect(
      spans.filter(({ parentSpanId }) => parentSpanId === undefined || parentSpanId === ''),
    ).toMatchObject([{ kind: 2, attributes: { 'maxsimd.request_id': 'mine' } }]);
  });

  test('sees a refused request with its code', async () => {
    const traceId = traceOf(3);
    const headers = parentHeader(traceId, '01');
    await client.send('POST', `/v1/indexes/${indexId}/search`, { headers, body: { query: '' } });
    const request = (await received(traceId)).find(({ kind }) => kind === 2);
    expect(request?.attributes).toMatchObject({
      'http.response.status_code': 422,
      'error.type': 'validation_error',
    });
  });

  test('sees nothing of a request that its caller does not sample, of one without a key, and of health checks', async () => {
    const [unsampled, keyless, health, last] = [traceOf(4), traceOf(5), traceOf(6), traceOf(7)];
    await search({ ...parentHeader(unsampled, '00'), 'x-request-id': 'unsampled' });
    await call(`${server.url}/v1/usage`, { headers: parentHeader(keyless, '01') });
    await call(`${server.url}/healthz`, { headers: parentHeader(health, '01') });
    await search(parentHeader(last, '01'));
    await received(last);
    expect(collector.spans().filter(({ traceId }) => [unsampled, keyless, health].includes(traceId))).toEqual(
      [],
    );
    // The ids of the caller's trace help in the log all the same.
    const line = requestLines(server).find(({ request_id: id }) => id === 'unsampled');
    expect(line).toMatchObject({ trace_id: unsampled });
  });

  test('that goes away costs dropped spans, a metric and a log line, and is sent to again when it is back', async () => {
    const { port } = collector;
    const dropped = async (): Promise<number> => {
      const { text } = await call(server.metricsUrl ?? '');
      return Number(/^maxsimd_trace_spans_total\{outcome="dropped"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    };
    const lines = (text: string): number => server.output().stderr.split(text).length - 1;
    await collector[Symbol.asyncDispose]();
    for (let round = 0; round < 2; round += 1) {
      const before = await dropped();
      expect((await search()).status).toBe(200);
      await eventually(async () => (await dropped()) > before);
    }
    expect(lines('the trace collector is away')).toBe(1);
    collector = await startTraceCollector(port);
    const traceId = traceOf(8);
    expect((await search(parentHeader(traceId, '01'))).status).toBe(200);
    await received(traceId);
    // The collector has them before the server has its answer.
    await eventually(() => lines('the trace collector takes spans') === 1);
  });
});

test('OTEL_TRACES_SAMPLER_ARG leaves out the others, but none that the caller samples', async () => {
  await using collector = await startTraceCollector();
  const server = await startServer({
    sharedEncoder: true,
    env: { MAXSIMD_TRACES_URL: collector.url, OTEL_TRACES_SAMPLER_ARG: '0' },
  });
  const { client } = await createTenant(server);
  await client.usage();
  await client.send('GET', '/v1/usage', { headers: parentHeader(traceOf(9), '01') });
  // Spans that wait are sent before the process ends.
  await server.stop();
  expect(new Set(collector.spans().map(({ traceId }) => traceId))).toEqual(new Set([traceOf(9)]));
  await server.scratch.remove();
});
