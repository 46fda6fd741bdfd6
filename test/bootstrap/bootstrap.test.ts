/** The first start of a checkout, with a compiler that says and does what a test needs. */
import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { describeConfig } from '../../src/app/config.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

let root: string;

beforeEach(async () => {
  root = await newDirectory();
  for (const name of ['src/bootstrap', 'src/console', 'native', 'node_modules/.bin', 'tools']) {
    mkdirSync(path.join(root, name), { recursive: true });
  }
  const source = path.resolve(import.meta.dirname, '../../src/bootstrap/bootstrap.mjs');
  copyFileSync(source, path.join(root, 'src/bootstrap/bootstrap.mjs'));
  for (const name of ['package-lock.json', '.npmrc', 'CMakeLists.txt'])
    writeFileSync(path.join(root, name), '');
  writeFileSync(
    path.join(root, 'src/bootstrap/build-console.mjs'),
    `import { mkdirSync, writeFileSync } from 'node:fs';
     mkdirSync('build/console', { recursive: true });
     writeFileSync('build/console/index.html', '');`,
  );
  script('tools/npm', 'touch node_modules/.package-lock.json');
  script('tools/cmake', 'true');
});

function script(name: string, lines: string): void {
  writeFileSync(path.join(root, name), `#!/bin/sh\n${lines}\n`);
  chmodSync(path.join(root, name), 0o755);
}

interface Start {
  readonly onOutput?: (output: string) => void;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

function bootstrap({ onOutput = () => {}, args = [], environment = {} }: Start = {}): Promise<{
  code: number | null;
  output: string;
}> {
  const child = spawn(process.execPath, ['src/bootstrap/bootstrap.mjs', ...args], {
    cwd: root,
    env: { PATH: `${path.join(root, 'tools')}:${process.env['PATH']}`, ...environment },
  });
  let output = '';
  child.stderr.on('data', (part: Buffer) => {
    output += part.toString();
    onOutput(output);
  });
  return new Promise((resolve) => void child.once('close', (code) => resolve({ code, output })));
}

it('states how long it takes, says how far the compiler is, and is silent the next time', async () => {
  script(
    'node_modules/.bin/cmake-js',
    `echo '[0/4] Re-checking'; echo '[3/4] Building'; while [ ! -e seen ]; do sleep 0.1; done
     mkdir -p build/Release; touch build/Release/maxsimd.node build/Release/page-checksums.so`,
  );
  const { code, output } = await bootstrap({
    onOutput(sofar) {
      if (/^maxsimd: \d+ s, 75%$/m.test(sofar)) writeFileSync(path.join(root, 'seen'), '');
    },
  });
  expect(code).toBe(0);
  expect(output).toMatch(/^maxsimd: installing packages \(once; about a minute\) \.\.\.$/m);
  expect(output).toMatch(/^maxsimd: building the addon \(once; .* minutes on two\) \.\.\.$/m);
  expect(output).toMatch(/^maxsimd: done in [\d.]+ s$/m);
  expect(await bootstrap()).toEqual({ code: 0, output: '' });
});

it('shows what the compiler said when it fails, and leaves no lock behind', async () => {
  script('node_modules/.bin/cmake-js', `echo 'store.cpp:7: error: expected ;'; exit 3`);
  const { code, output } = await bootstrap();
  expect(code).toBe(1);
  expect(output).toContain('store.cpp:7: error: expected ;');
  expect(output).toMatch(/maxsimd: cmake-js compile failed \(exit 3\)\n$/);
  expect(existsSync(path.join(root, '.bootstrap.lock'))).toBe(false);
});

/** A port that is in use while the test runs. */
async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

it('says that a port is in use before it installs anything, and names the variable', async () => {
  const port = await takenPort();
  const message = `maxsimd: MAXSIMD_HTTP_PORT: port ${port} of 127.0.0.1 is in use; choose another, or 0 for any free one\n`;
  const usual = { args: [`MAXSIMD_HTTP_PORT=${port}`, 'MAXSIMD_METRICS_PORT'] };
  const chosen = { args: ['MAXSIMD_HTTP_PORT=1'], environment: { MAXSIMD_HTTP_PORT: String(port) } };
  for (const start of [usual, chosen]) expect(await bootstrap(start)).toEqual({ code: 1, output: message });
  expect(existsSync(path.join(root, 'node_modules/.package-lock.json'))).toBe(false);
});

it('asks for no port that is not chosen, and leaves what is no port to the program', async () => {
  script(
    'node_modules/.bin/cmake-js',
    'mkdir -p build/Release; touch build/Release/maxsimd.node build/Release/page-checksums.so',
  );
  const environment = { MAXSIMD_HTTP_PORT: '0', MAXSIMD_ADMIN_PORT: 'tcp://10.0.0.1:80' };
  const args = ['MAXSIMD_HTTP_PORT=8080', 'MAXSIMD_METRICS_PORT', 'MAXSIMD_ADMIN_PORT'];
  expect((await bootstrap({ args, environment })).code).toBe(0);
});

it('is given the ports that a start and a cluster need, with the defaults of the configuration', () => {
  const { scripts } = JSON.parse(
    readFileSync(path.resolve(import.meta.dirname, '../../package.json'), 'utf8'),
  ) as { readonly scripts: Readonly<Record<string, string>> };
  const { default: usual } = describeConfig().find(({ name }) => name === 'MAXSIMD_HTTP_PORT')!;
  expect(scripts['start']).toContain(
    `bootstrap.mjs MAXSIMD_HTTP_PORT=${usual} MAXSIMD_METRICS_PORT MAXSIMD_ADMIN_PORT &&`,
  );
  expect(scripts['cluster']).toContain('bootstrap.mjs MAXSIMD_HTTP_PORT &&');
});
