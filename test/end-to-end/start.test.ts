/** How the server starts, and how it refuses to. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import { call, connect } from '../support/running/client.ts';
import { createTenant } from '../support/commands/command-line.ts';
import { eventually, within } from '../support/running/eventually.ts';
import { encodersOf } from '../support/running/processes.ts';
import {
  launchServer,
  makeScratch,
  type Launch,
  type Output,
  type Scratch,
} from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { tinyModel } from '../support/run-benchmark.ts';

const scratches: Scratch[] = [];
const launches: Launch[] = [];

async function scratchOf(): Promise<Scratch> {
  const scratch = await makeScratch();
  scratches.push(scratch);
  return scratch;
}

afterEach(async () => {
  for (const launched of launches.splice(0)) {
    launched.signal('SIGKILL');
    await launched.exited;
  }
  for (const scratch of scratches.splice(0)) await scratch.remove();
});

async function launch(env: Readonly<Record<string, string>>, scratch?: Scratch): Promise<Launch> {
  const launched = await launchServer({
    scratch: scratch ?? (await scratchOf()),
    env: { ...tinyModel, ...env },
  });
  launches.push(launched);
  return launched;
}

/** Waits for the ready line. */
async function start(scratch: Scratch, env: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const server = await startServer({ scratch, env: { ...tinyModel, ...env } });
  launches.push(server);
  return server;
}

/** A port that is in use until the test ends. */
async function takenPort(): Promise<AddressInfo> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  onTestFinished(() => void server.close());
  return server.address() as AddressInfo;
}

/** Starts a server that must refuse; what it printed. */
async function refusal(env: Readonly<Record<string, string>>, scratch?: Scratch): Promise<Output> {
  const launched = await launch(env, scratch);
  const exit = await within('the refusal', launched.exited);
  expect(exit.signal).toBeNull();
  expect(exit.code).toBeGreaterThan(0);
  const output = launched.output();
  expect(output.stdout).not.toContain('"ready"');
  return output;
}

describe('A server in a home directory, with variables of others and the usual port of metrics in use', () => {
  let scratch: Scratch;
  let server: ServerProcess;
  const busy = createServer().unref();
  beforeAll(async () => {
    // In use by us, or by whoever had it before.
    const { promise, resolve } = Promise.withResolvers<unknown>();
    busy.once('listening', resolve).on('error', resolve).listen(9464, '127.0.0.1');
    await promise;
    scratch = await makeScratch();
    server = await startServer({
      scratch,
      env: {
        HOME: scratch.temporary,
        MAXSIMD_URL: 'http://127.0.0.1:1',
        MAXSIMD_API_KEY: 'qkv_live_x',
        MAXSIMD_METRICS_PORT: 'auto',
        MAXSIMD_ENCODER_TLS_FILES: '/no/such/authority',
        MAXSIMD_SERVICE_HOST: '10.0.0.11',
        MAXSIMD_PORT: 'tcp://10.0.0.11:8080',
        MAXSIMD_PORT_8080_TCP_ADDR: '10.0.0.11',
      },
    });
  });
  afterAll(async () => {
    await server?.kill();
    await scratch.remove();
    busy.close();
  });

  test('prints one ready line, compact JSON on standard output with url, model and model version', async () => {
    const lines = server
      .output()
      .stdout.split('\n')
      .filter((line) => line.includes('"ready"'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^\{"event":"ready","url":"http:\/\/127\.0\.0\.1:[1-9]\d*","model":"[^"]+","model_version":"[^"]+"\}$/,
    );
    // Ready means ready.
    expect((await call(`${server.url}/readyz`)).status).toBe(200);
  });

  test('ignores what Kubernetes sets for a Service called maxsimd, with a warning', () => {
    const warning = server
      .output()
      .stderr.split('\n')
      .find((line) => line.includes('Kubernetes'));
    expect(JSON.parse(warning ?? '{}')).toMatchObject({
      level: 'warn',
      variables: ['MAXSIMD_SERVICE_HOST', 'MAXSIMD_PORT', 'MAXSIMD_PORT_8080_TCP_ADDR'],
    });
  });

  test('minds neither the variables of the command line nor an authority of encoders that it does not have', () => {
    expect(server.readyLine.event).toBe('ready');
    expect(server.output().stderr).not.toMatch(/MAXSIMD_(URL|API_KEY|ENCODER_TLS_FILES)/);
  });

  test('has its metrics on another port', async () => {
    const [, port] = /maxsimd: metrics on port (\d+): 9464 is in use/.exec(server.output().stderr) ?? [];
    expect((await call(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
  });

  test('keeps its data directory private, and writes nothing elsewhere but sockets', async () => {
    expect(await readdir(scratch.temporary)).toEqual([expect.stringMatching(/^maxsimd-encoder-/)]);
    // eslint-disable-next-line no-bitwise -- permission bits
    expect((await stat(scratch.data)).mode & 0o777).toBe(0o700);
    expect(path.isAbsolute(scratch.data)).toBe(true);
  });
});

describe('Start', () => {
  test('an unknown model and a missing certificate are errors', async () => {
    const refusals = [
      refusal({ MAXSIMD_MODEL: 'no-such-model' }),
      refusal({ MAXSIMD_TLS_FILES: '/no/such/file,/no/such/file' }),
    ];
    const [model, tls] = (await Promise.all(refusals)).map((output) => output.stderr);
    expect(model).toContain('no-such-model');
    expect(tls).toContain('/no/such/file');
  });

  test('a model that cannot be read is an error of one line that says what is wrong with it', async () => {
    const { root } = await scratchOf();
    const models = path.join(root, 'models');
    const directory = path.join(models, 'broken', '1');
    await mkdir(directory, { recursive: true });
    await writeFile(path.join(directory, 'onnx_config.json'), '{}');
    await writeFile(path.join(directory, 'model.onnx'), 'no graph');
    await writeFile(path.join(directory, 'tokenizer.json'), '{}');
    const { stderr } = await refusal({ MAXSIMD_MODELS_DIR: models, MAXSIMD_MODEL: 'broken' });
    const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(lines).toEqual([
      expect.stringMatching(
        /^maxsimd: the model broken cannot be served \(MAXSIMD_PROVIDER=\w+\): .*embedding_dim/,
      ),
    ]);
  });

  test('an authority of remote encoders that cannot be read is an error with such encoders', async () => {
    const authority = { MAXSIMD_ENCODER_TLS_FILES: '/no/such/authority' };
    const { stderr } = await refusal({ ...authority, MAXSIMD_ENCODERS: '127.0.0.1:1' });
    expect(stderr).toContain('MAXSIMD_ENCODER_TLS_FILES: cannot read /no/such/authority');
  });

  test('an explicit cuda serves from CUDA or not at all', async () => {
    const launched = await launch({ MAXSIMD_PROVIDER: 'cuda' });
    const outcome = await within(
      'the start',
      Promise.race([launched.exited, launched.ready.catch(() => launched.exited)]),
    );
    const { stderr } = launched.output();
    if ('event' in outcome) {
      expect(stderr).toContain('"provider":"cuda"');
      return;
    }
    expect(outcome.code).toBeGreaterThan(0);
    expect(stderr).toMatch(/cuda/i);
  });

  test('[decision-38] loopback by default; binding elsewhere without TLS needs an explicit flag (behind a proxy)', async () => {
    const http = { MAXSIMD_HTTP_HOST: '0.0.0.0' };
    const metrics = { MAXSIMD_METRICS_HOST: '0.0.0.0', MAXSIMD_METRICS_PORT: '0' };
    expect((await refusal(http)).stderr).toMatch(/MAXSIMD_HTTP_HOST: .*MAXSIMD_ALLOW_PLAIN=http/);
    expect((await refusal(metrics)).stderr).toMatch(/MAXSIMD_METRICS_HOST: .*MAXSIMD_ALLOW_PLAIN=metrics/);
    const allowed = { MAXSIMD_ALLOW_PLAIN: 'http,metrics' };
    const launched = await launch({ ...http, ...metrics, ...allowed });
    const { url } = await within('the start', launched.ready);
    expect((await call(`http://127.0.0.1:${new URL(url).port}/healthz`)).status).toBe(200);
    const [, port] = /metrics on port (\d+)/.exec(launched.output().stderr) ?? [];
    expect((await call(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
  });

  test('a second server on the same data directory is refused, and the first one goes on', async () => {
    const scratch = await scratchOf();
    // A file that is no authority does not matter either, without remote encoders.
    const first = await start(scratch, { MAXSIMD_ENCODER_TLS_FILES: import.meta.filename });
    const { stderr } = await refusal({}, scratch);
    expect(stderr).toMatch(/lock|in use|already|another/i);
    expect((await call(`${first.url}/readyz`)).status).toBe(200);
    // A killed server's lock dies with it, and so do its encoders and their sockets.
    await first.kill();
    await eventually(async () => (await readdir(scratch.temporary)).length === 0);
    await start(scratch);
  });

  test('given encoder addresses are used, and no encoder is started beside them', async () => {
    const first = await start(await scratchOf());
    const address = /"address":"(unix:[^"]+)"/.exec(first.output().stderr)?.[1] ?? '';
    const second = await start(await scratchOf(), { MAXSIMD_ENCODERS: address });
    expect(await encodersOf(second.pid)).toEqual([]);
    expect(second.readyLine.model_version).toBe(first.readyLine.model_version);
    const { client } = await createTenant(second);
    const documents = [{ doc_id: 'a', text: 'river stone' }];
    expect((await client.score({ query: 'river', documents })).status).toBe(200);
    // It ends without the encoder that is not its own.
    expect((await second.stop()).code).toBe(0);
    expect(await encodersOf(first.pid)).not.toEqual([]);
  });

  test('a start that fails beside given encoders ends with its error, and waits for none of them', async () => {
    const scratch = await scratchOf();
    await mkdir(path.join(scratch.data, 'catalog.db'), { recursive: true });
    const { stderr } = await refusal({ MAXSIMD_ENCODERS: '127.0.0.1:1' }, scratch);
    expect(stderr).toContain('catalog');
  });

  test('a port in use is an error that names its variable, before anything is opened', async () => {
    const { port } = await takenPort();
    for (const name of ['MAXSIMD_HTTP', 'MAXSIMD_METRICS', 'MAXSIMD_ADMIN']) {
      const scratch = await scratchOf();
      const keys = path.join(scratch.root, 'operators');
      await writeFile(keys, 'k'.repeat(32));
      const { stderr } = await refusal(
        { [`${name}_PORT`]: String(port), MAXSIMD_ADMIN_KEY_FILE: keys },
        scratch,
      );
      expect(stderr).toBe(
        `maxsimd: ${name}_PORT: port ${port} of 127.0.0.1 is in use; choose another, or 0 for any free one\n`,
      );
      expect(await readdir(scratch.root)).not.toContain('data');
    }
  });

  test('an address that is not of this machine is an error that names its variable', async () => {
    const { stderr } = await refusal({ MAXSIMD_HTTP_HOST: '192.0.2.1', MAXSIMD_ALLOW_PLAIN: 'http' });
    expect(stderr).toBe('maxsimd: MAXSIMD_HTTP_HOST: 192.0.2.1 is not an address of this machine\n');
  });

  test('an empty data directory gets a first tenant whose key only its owner can read', async () => {
    const scratch = await scratchOf();
    const first = await start(scratch);
    const printed = first.output();
    // Standard output is a pipe here, as where it is logged.
    expect(printed.stdout + printed.stderr).not.toContain('qkv_live_');
    const [, key = ''] = await promisify(execFile)('sh', [
      '-c',
      `${/export MAXSIMD_API_KEY=.*/.exec(printed.stdout)?.[0]}; echo "key $MAXSIMD_API_KEY"`,
    ]).then(({ stdout }) => /^key (qkv_live_\w+)$/m.exec(stdout) ?? []);
    expect((await connect(first.url, key).usage()).status).toBe(200);
    const file = path.join(scratch.data, 'first-api-key');
    expect(printed.stdout).toContain(file);
    // eslint-disable-next-line no-bitwise -- permission bits
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await first.stop();
    const second = await start(scratch);
    expect(second.output().stdout).not.toContain('MAXSIMD_API_KEY');
    expect((await connect(second.url, key).usage()).status).toBe(200);
  });
});
