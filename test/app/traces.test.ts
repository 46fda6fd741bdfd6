/** Bounds of what waits for a trace collector. */
import { EventEmitter } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { startTraces } from '../../src/app/telemetry/traces.ts';
import { RequestScope } from '../../src/http/request-scope.ts';

const request = { method: 'GET', route: '/v1/usage', status: 200 };

function endedScope(): RequestScope {
  const response = new EventEmitter() as ServerResponse;
  const scope = new RequestScope({ requestId: 'r', traceParent: undefined }, response, () => {});
  response.emit('close');
  return scope;
}

test('before a collector that hangs, few spans wait, all others are counted as dropped, and the end is not held up', async () => {
  const collector = createServer(() => {});
  const listening = Promise.withResolvers<void>();
  collector.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const counts = { sent: 0, dropped: 0 };
  const traces = startTraces({
    url: `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`,
    share: 1,
    threads: 1,
    version: '1',
    instance: 'here',
    onSpans: (outcome, spans) => (counts[outcome] += spans),
    onChange: () => {},
  });
  // A request and its stage `answer`.
  for (let made = 0; made < 10_000; made += 1) traces.ended(endedScope(), request);
  expect(counts).toEqual({ sent: 0, dropped: 20_000 - 4_096 });
  const startedAt = performance.now();
  await traces.close();
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  collector.closeAllConnections();
  collector.close();
});
