/** An import into a service whose encoder is too slow for the batches that it gets: it becomes smaller, and ends whole. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runJson } from '../../support/commands/command-process.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { pause } from '../../support/running/eventually.ts';
import { startForeignEncoder, type ForeignEncoder } from '../../support/network/foreign-encoder.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';

const deadlineMs = 1_500;
/** Four batches of 50 take 8 s. One of them alone takes 2 s, and half of it takes 1 s. */
const documentMs = 40;

let encoder: ForeignEncoder;
let server: ServerProcess;

beforeAll(async () => {
  encoder = await startForeignEncoder();
  let turn = Promise.resolve();
  encoder.behave({
    run: async () => {
      turn = turn.then(() => pause(documentMs));
      await turn;
      return true;
    },
  });
  const env = {
    MAXSIMD_ENCODERS: encoder.address,
    MAXSIMD_MODEL: 'foreign/1',
    MAXSIMD_TIMEOUT_UPSERT_MS: String(deadlineMs),
  };
  server = await startServer({ env });
});

afterAll(async () => {
  await server?.stop();
  await server?.scratch.remove();
  encoder?.close();
});

test('maxsimd import stores every document, after requests that came to nothing', async () => {
  const limits = { requestsPerMinute: 1_000_000, maxConcurrentRequests: 4 };
  const { key } = await createTenant(server, limits);
  const rows = Array.from({ length: 200 }, (_, at) => JSON.stringify({ id: `d${at}`, text: `stone ${at}` }));
  // The command takes an answer after half of its time limit for late, if that is below half of the usual deadline.
  const args = ['import', '-', '--index', 'slow', '--timeout', '2', '--retry-for', '10', '--verbose'];
  const { exitCode, document, stderr } = await runJson(args, {
    environment: { MAXSIMD_URL: server.url, MAXSIMD_API_KEY: key },
    input: rows.join('\n'),
  });
  expect(document).toMatchObject({ done: 200, failed: 0 });
  expect(exitCode).toBe(0);
  expect(stderr).toContain('503 service_unavailable: the deadline passed');
});
