import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { createLogger, terminalLine } from '../../src/observation/logging.ts';

function shown(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let text = '';
  const destination = { write: (line: string) => void (text += terminalLine(line)) };
  write(createLogger({ level: 'info', destination }));
  return stripVTControlCharacters(text);
}

it('a request is one short line', () => {
  const fields = {
    request_id: 'r',
    method: 'POST',
    route: '/v1/score',
    status: 422,
    code: 'validation_error',
  };
  const text = shown((logger) => logger.info({ ...fields, latency_ms: 1.5, timings_ms: {} }, 'request'));
  expect(text).toMatch(/^\d\d:\d\d:\d\d info {2}POST \/v1\/score 422 1\.5 ms code=validation_error\n$/);
});

it('other lines have their message and their fields', () => {
  const error = Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE' });
  const text = shown((logger) => logger.warn({ index_id: 'i', err: error }, 'background work failed'));
  expect(text).toMatch(/warn {2}background work failed index_id=i err=\{"type":"Error","code":"EADDRINUSE"/);
});

it('what is no log line stays as it is', () => {
  for (const line of ['a crash\n', '{"cut', '']) expect(terminalLine(line)).toBe(line);
});
