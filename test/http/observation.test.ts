import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { createLogger, describeError } from '../../src/observation/logging.ts';
import { createMetrics } from '../../src/observation/metrics.ts';
import { createMetricsServer } from '../../src/app/telemetry/metrics-server.ts';
import { startHttp } from '../support/http/http-server.ts';

describe('the log', () => {
  test('has one line per request, with route pattern, status, code and stages', async () => {
    await using http = await startHttp();
    const id = await http.createIndex();
    http.logLines.length = 0;
    const url = `/v1/indexes/${id}/search`;
    await http.inject({ method: 'POST', url, payload: { query: 'q' }, headers: { 'x-request-id': 'r-1' } });
    await http.inject({ method: 'DELETE', url: '/v1/indexes/nope/documents/canary?debug=canary' });
    await http.app.inject({ url: '/canary' });
    expect(http.logLines).toMatchObject([
      {
        level: 'info',
        msg: 'request',
        request_id: 'r-1',
        tenant_id: 'tenant-1',
        method: 'POST',
        route: '/v1/indexes/:index_id/search',
        status: 200,
        latency_ms: expect.any(Number),
        timings_ms: {
          admission: expect.any(Number),
          body: expect.any(Number),
          encode: expect.any(Number),
          answer: expect.any(Number),
        },
      },
      { route: '/v1/indexes/:index_id/documents/:doc_id', status: 422, code: 'validation_error' },
      { route: 'unmatched', status: 404, code: 'not_found' },
    ]);
    expect(http.logText()).not.toContain('canary');
  });

  test('has health checks only at the level debug, unless they fail', async () => {
    await using http = await startHttp();
    await http.app.inject({ url: '/healthz' });
    await http.app.inject({ url: '/readyz' });
    const checks = { catalog: 'ok', encoder: 'ok', disk: 'full', draining: 'ok' };
    http.service.readiness = async () => ({ ready: false, checks });
    await http.app.inject({ url: '/readyz' });
    expect(http.logLines).toMatchObject([
      { level: 'debug', msg: 'request', route: '/healthz', status: 200 },
      { level: 'debug', msg: 'request', route: '/readyz', status: 200 },
      { level: 'warn', msg: 'request', route: '/readyz', status: 503 },
    ]);
  });

  test('says why the service was unavailable', async () => {
    await using http = await startHttp();
    http.service.before = () => {
      const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      throw new ServiceError('service_unavailable', 'no encoder', { cause });
    };
    await http.inject({ url: '/v1/usage' });
    expect(http.logLines).toMatchObject([
      {
        level: 'warn',
        msg: 'unavailable',
        reason: 'refuses connections',
        err: { message: 'no encoder', cause: { code: 'ECONNREFUSED' } },
      },
      { level: 'warn', msg: 'request', status: 503, code: 'service_unavailable' },
    ]);
  });

  test('describes an unexpected error by type and frames; its message only when it cannot quote a request', () => {
    const foreign = describeError(new RangeError('quoted text'));
    expect(foreign).toMatchObject({
      type: 'RangeError',
      frames: expect.arrayContaining([expect.stringMatching(/^at /)]),
    });
    expect(JSON.stringify(foreign)).not.toContain('quoted text');
    expect(describeError(new Error('this is a bug: rows overlap'))).toMatchObject({
      message: 'this is a bug: rows overlap',
    });
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const wrapped = new ServiceError('service_unavailable', 'the disk is full', { cause: full });
    expect(describeError(wrapped)).toMatchObject({
      code: 'service_unavailable',
      message: 'the disk is full',
      cause: { code: 'ENOSPC', message: 'ENOSPC: no space left on device, write' },
    });
    const refused = Object.assign(new Error('unsupported startup parameter: options'), { code: '08P01' });
    expect(describeError(refused)).toMatchObject({ message: 'unsupported startup parameter: options' });
    const ofRow = Object.assign(new Error('duplicate key: quoted text'), { code: '23505' });
    expect(JSON.stringify(describeError(ofRow))).not.toContain('quoted text');
    expect(describeError('thrown text')).toEqual({ type: 'string' });
    const many = new Error('quoted\n    at text (file:1:1)\nsecond line');
    expect(JSON.stringify(describeError(many))).not.toContain('second line');
  });

  test('of a level below the one asked for is not written', () => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn', destination: { write: (line) => lines.push(line) } });
    logger.info('quiet');
    logger.warn({ err: new Error('x') }, 'loud');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 'warn', msg: 'loud', err: { type: 'Error' } });
  });
});

describe('metrics', () => {
  test('of requests: by route, status and code; durations by route and stage', async () => {
    await using http = await startHttp();
    await http.inject({ url: '/v1/usage' });
    await http.app.inject({ url: '/v1/usage' });
    await http.app.inject({ url: '/v1/whatever' });
    const text = await http.metrics.render();
    for (const line of [
      'maxsimd_http_requests_total{method="GET",route="/v1/usage",status="200",code=""} 1',
      'maxsimd_http_requests_total{method="GET",route="/v1/usage",status="401",code="authentication_failed"} 1',
      'maxsimd_http_requests_total{method="GET",route="unmatched",status="401",code="authentication_failed"} 1',
      'maxsimd_http_requests_rejected_total{code="authentication_failed"} 2',
      'maxsimd_http_request_duration_seconds_count{route="/v1/usage"} 2',
      'maxsimd_http_request_stage_seconds_count{route="/v1/usage",stage="service"} 1',
      'maxsimd_http_requests_in_flight 0',
    ]) {
      expect(text).toContain(line);
    }
    expect(text).toMatch(/^maxsimd_nodejs_eventloop_lag_p99_seconds /m);
    expect(text).toMatch(/^maxsimd_process_resident_memory_bytes /m);
  });

  test('of other layers are read through plain functions when they are scraped', async () => {
    const metrics = createMetrics();
    let queued = 3;
    let states: { labels: { state: string }; value: number }[] = [{ labels: { state: 'up' }, value: 2 }];
    metrics.registerGauge({ name: 'encoder_queue_tokens', help: 'Tokens waiting.' }, () => queued);
    metrics.registerGauge({ name: 'encoders', help: 'Encoders.', labelNames: ['state'] }, async () => states);
    metrics.registerCounter({ name: 'encoder_batches_total', help: 'Batches.' }, () => 41);
    const observe = metrics.histogram({ name: 'batch_tokens', help: 'Tokens.', buckets: [10, 100] });
    const count = metrics.counter({ name: 'restarts_total', help: 'Restarts.', labelNames: ['reason'] });
    observe({}, 50);
    count({ reason: 'crash' });
    count({ reason: 'crash' }, 2);
    const first = await metrics.render();
    for (const line of [
      'maxsimd_encoder_queue_tokens 3',
      'maxsimd_encoders{state="up"} 2',
      'maxsimd_encoder_batches_total 41',
      'maxsimd_batch_tokens_bucket{le="100"} 1',
      'maxsimd_restarts_total{reason="crash"} 3',
    ]) {
      expect(first).toContain(line);
    }
    queued = 0;
    states = [{ labels: { state: 'down' }, value: 1 }];
    const second = await metrics.render();
    expect(second).toContain('maxsimd_encoder_queue_tokens 0');
    expect(second).toContain('maxsimd_encoders{state="down"} 1');
    expect(second).not.toContain('state="up"');
    expect(second).toContain('maxsimd_encoder_batches_total 41');
  });

  test('of several threads are summed, and of event loops the latest counts', async () => {
    const thread = createMetrics('thread');
    const metrics = createMetrics();
    const described = { name: 'restarts_total', help: 'Restarts.' };
    const [count, countInThread] = [metrics.counter(described), thread.counter(described)];
    countInThread({}, 2);
    const name = 'maxsimd_nodejs_eventloop_lag_max_seconds';
    let snapshot = await thread.snapshot();
    const longestLag = (): number => snapshot.find((metric) => metric.name === name)?.values[0]?.value ?? 0;
    await vi.waitFor(async () => {
      const heldUntil = performance.now() + 500;
      while (performance.now() < heldUntil);
      // The delay is noted when the loop turns.
      await pause(20);
      snapshot = await thread.snapshot();
      expect(longestLag()).toBeGreaterThan(0.4);
    }, 60_000);
    const longest = longestLag();
    metrics.include(async () => {
      // A message of the thread, which comes before its reply.
      count({});
      return [snapshot];
    });
    const lines = (await metrics.render()).split('\n');
    expect(lines).toContain('maxsimd_restarts_total 3');
    expect(lines).toContain(`${name} ${longest}`);
    expect(lines.filter((line) => line.startsWith('maxsimd_process_start_time_seconds '))).toHaveLength(1);
    expect(await thread.render()).not.toMatch(/^maxsimd_(?!nodejs_eventloop|restarts)/m);
  });

  test('are served on a listener of their own', async () => {
    const metrics = createMetrics();
    const errors: unknown[] = [];
    const server = createMetricsServer(metrics, (error) => errors.push(error));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const response = await fetch(`${base}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/plain');
    expect(await response.text()).toContain('maxsimd_process_cpu_seconds_total');
    expect((await fetch(`${base}/`)).status).toBe(404);
    expect((await fetch(`${base}/metrics`, { method: 'POST' })).status).toBe(405);
    metrics.registerGauge({ name: 'broken', help: 'Fails.' }, () => {
      throw new Error('x');
    });
    expect(errors).toEqual([]);
    expect((await fetch(`${base}/metrics`)).status).toBe(500);
    expect(errors).toEqual([expect.objectContaining({ message: 'x' })]);
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
});
