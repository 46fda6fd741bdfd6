/** The listener answers bytes that no HTTP client sends. These tests need a socket. */
import { expect, test } from 'vitest';

import { openRaw } from '../../../support/network/raw-http.ts';
import { useSharedStage } from '../../../support/running/stage.ts';
import { errorBody } from '../../../support/running/wire.ts';

const stage = useSharedStage();

/** Sends bytes as they are and checks that what comes back is an error of the common form. */
async function expectRawError(bytes: string, status: number): Promise<void> {
  const connection = await openRaw(stage.server.url);
  connection.write(bytes);
  const reply = await connection.reply();
  expect(reply.status).toBe(status);
  expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(reply.headers.get('x-request-id')).toMatch(/^\S+$/);
  expect(errorBody.parse(JSON.parse(reply.body)).error.code).toBe('validation_error');
}

test('[decision-17] 408, 414, 431 and parser-level 400 keep the error body (`validation_error`) and `x-request-id`', async () => {
  const host = 'Host: localhost\r\n';
  await expectRawError('this is not HTTP\r\n\r\n', 400);
  await expectRawError(`GET /healthz HTTP/1.1\r\n${host}Bad Header Name: x\r\n\r\n`, 400);
  await expectRawError(`GET /healthz HTTP/1.1\r\n${host}X-Large: ${'x'.repeat(100_000)}\r\n\r\n`, 431);
  await expectRawError(
    `POST /v1/score HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
    400,
  );
  await expectRawError(`DELETE /v1/indexes/x/documents/${'x'.repeat(5000)} HTTP/1.1\r\n${host}\r\n`, 414);
  await expectRawError(`DELETE /v1/indexes/x/documents/%ZZ HTTP/1.1\r\n${host}\r\n`, 400);
  // A header that never ends: 408 after the server's patience with headers (10 s).
  await expectRawError(`GET /healthz HTTP/1.1\r\n${host}X-Slow: `, 408);
});
