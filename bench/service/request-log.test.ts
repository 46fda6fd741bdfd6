import { expect, it } from 'vitest';
import { RequestLog } from './request-log.ts';

it('a request log hands on what is no line of the log, and finds the searches among the rest', async () => {
  const foreign: string[] = [];
  const log = new RequestLog((line) => foreign.push(line));
  const warning = '(node:1) ExperimentalWarning: this may change';
  const search = { request_id: 'b', timings_ms: { encode: 1 } };
  for (const line of [warning, '17', '{"request_id":"a","timings_ms":{}}', JSON.stringify(search)]) {
    log.add(line);
  }
  expect(await log.take('b')).toEqual(search);
  expect(foreign).toEqual([warning, '17']);
  const waiting = log.take('a');
  log.end(new Error('the server has gone'));
  await expect(waiting).rejects.toThrow('the server has gone');
});
