import { describe, expect, test } from 'vitest';
import { traceParentOf } from '../../../src/http/protocol/trace-parent.ts';
import { startHttp } from '../../support/http/http-server.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const valid = `00-${traceId}-${spanId}-01`;

describe('traceparent', () => {
  test.each([
    [valid, true],
    [`00-${traceId}-${spanId}-00`, false],
    [`00-${traceId}-${spanId}-03`, true],
    [`cc-${traceId}-${spanId}-01-what-the-future-will-be-like`, true],
    [`cc-${traceId}-${spanId}-01`, true],
  ])('%s is understood', (traceparent, isSampled) => {
    expect(traceParentOf({ traceparent })).toEqual({ traceId, spanId, isSampled });
  });

  test.each([
    undefined,
    '',
    `${valid}-more`,
    `cc-${traceId}-${spanId}-01more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-1`,
    `00-${traceId}-${spanId}`,
    `00-${traceId.slice(1)}-${spanId}-01`,
    ` ${valid}`,
    `${valid}, ${valid}`,
  ])('%j is as none', (traceparent) => {
    expect(traceParentOf({ traceparent })).toBeUndefined();
  });

  test('its trace stands in the log line beside the request id, and a bad one does not', async () => {
    await using http = await startHttp();
    for (const traceparent of [valid, `${valid}canary`])
      await http.inject({ url: '/v1/usage', headers: { traceparent, 'x-request-id': 'r-1' } });
    expect(http.logLines.map(({ request_id, trace_id }) => [request_id, trace_id])).toEqual([
      ['r-1', traceId],
      ['r-1', undefined],
    ]);
    expect(http.logText()).not.toContain('canary');
  });
});
