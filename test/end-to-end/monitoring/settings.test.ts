/** Settings that no other test sets, with their effects on a real server. */
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { call, expectError } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { eventually } from '../../support/running/eventually.ts';
import { encodersOf } from '../../support/running/processes.ts';
import { repositoryRoot } from '../../support/running/launch.ts';
import { tinyModel } from '../../support/run-benchmark.ts';
import { startServer, type ServerOptions } from '../../support/running/server.ts';

async function serverWith(options: ServerOptions) {
  const server = await startServer(options);
  onTestFinished(async () => {
    await server.stop();
    await server.scratch.remove();
  });
  return server;
}

test('threads, memory, loaded models and the console are as the settings say', async () => {
  const server = await serverWith({
    metrics: true,
    env: {
      MAXSIMD_CONSOLE: 'false',
      MAXSIMD_ENCODER_THREADS: '3',
      MAXSIMD_ENGINE_THREADS: '3',
      MAXSIMD_MEMORY_MIB: '256',
      MAXSIMD_MODELS_DIR: path.join(repositoryRoot, 'test/fixtures'),
      MAXSIMD_MODELS_LOADED: '1',
    },
  });
  expect((await call(`${server.url}/console`)).status).toBe(404);
  expect(server.output().stderr).toMatch(/"threads":3,.*"ready"/);
  expect((await encodersOf(server.pid)).map(({ command }) => command)).toEqual([
    expect.stringMatching(/--threads[ =]3\b/),
  ]);
  expect((await call(server.metricsUrl ?? '')).text).toContain(
    `maxsimd_engine_memory_bytes{kind="bound"} ${256 * 2 ** 20}\n`,
  );
  const { client } = await createTenant(server);
  const reply = await client.createIndex({ name: 'tiny', model: 'colbert-tiny' });
  const { message } = expectError(reply, 503, 'service_unavailable');
  expect(message).toContain('at most 1 models are loaded at a time');
});

test('a trusted proxy says that its client speaks HTTPS, and encoders above their memory are restarted', async () => {
  const server = await serverWith({
    env: { ...tinyModel, MAXSIMD_ENCODER_MEMORY_MIB: '1', MAXSIMD_TRUST_PROXY: 'true' },
  });
  const headers = { 'x-forwarded-proto': 'https' };
  const page = await fetch(`${server.url}/console`, { headers });
  expect(page.headers.get('strict-transport-security')).not.toBeNull();
  expect((await fetch(`${server.url}/console`)).headers.get('strict-transport-security')).toBeNull();
  await eventually(async () => server.output().stderr.includes('encoder outgrew its memory bound'));
});
