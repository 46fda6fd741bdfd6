/**
 * SIGTERM while a process is still being read, as process 1 of a container gets it: the kernel drops what process 1 does not
 * catch, so the process itself must catch it first. It ends with 0 and never becomes ready. And other things that containers
 * do to processes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { defaultModel } from '../support/encoder/models.ts';
import { eventually, pause, within } from '../support/running/eventually.ts';
import { childrenOf } from '../support/running/processes.ts';
import { childEnvironment, makeScratch, repositoryRoot } from '../support/running/launch.ts';

const namespace = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
/** Where the system lets nobody make namespaces, the processes are ordinary ones. */
const mayBeFirst = spawnSync('unshare', [...namespace, 'true']).status === 0;

/** Says when the process has begun to catch SIGTERM. */
const witness = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs';
  process.on('newListener', (name) => {
    if (name === 'SIGTERM') process.nextTick(() => writeSync(2, 'catches SIGTERM\\n'));
  });
`)}`;

const source = (file: string): string => path.join(repositoryRoot, 'src', file);
const commands = {
  service: [source('cli/main.ts'), 'serve'],
  encoder: [
    source('encoder/server/main.ts'),
    '--listen=127.0.0.1:0',
    '--provider=cpu',
    `--model-dir=${defaultModel}`,
  ],
};

async function launch(command: readonly string[], ...under: readonly string[]) {
  const scratch = await makeScratch();
  onTestFinished(async () => scratch.remove());
  const program = [process.execPath, '--import', witness, ...command];
  const [file = '', ...args] = [...under, ...(mayBeFirst ? ['unshare', ...namespace] : []), ...program];
  const child = spawn(file, args, {
    cwd: scratch.root,
    env: childEnvironment({
      TMPDIR: scratch.temporary,
      MAXSIMD_DATA_DIR: scratch.data,
      MAXSIMD_HTTP_PORT: '0',
      MAXSIMD_METRICS_PORT: '-1',
    }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()));
  const caught = Promise.withResolvers<void>();
  let logged = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    logged += `${line}\n`;
    if (line === 'catches SIGTERM') caught.resolve();
  });
  return {
    caught: caught.promise,
    printed: () => printed,
    logged: () => logged,
    exited: once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    /** `unshare` passes no signals on. */
    async terminate() {
      const first = mayBeFirst
        ? await eventually(async () => (await childrenOf(child.pid!))[0]?.pid)
        : child.pid!;
      process.kill(first, 'SIGTERM');
    },
  };
}

test.each(Object.keys(commands) as (keyof typeof commands)[])(
  'the %s catches SIGTERM before it is read, and ends without having been ready',
  async (name) => {
    const launched = await launch(commands[name]);
    await within('the first handler', launched.caught);
    await launched.terminate();
    expect(await within('the end', launched.exited)).toEqual([0, null]);
    expect(launched.printed()).not.toContain('"ready"');
  },
);

test.each(
  Object.entries(commands).flatMap(([name, command]) =>
    [100, 400, 800, 1_600].map((afterMs) => ({ name, command, afterMs })),
  ),
)('the $name ends with 0 by a SIGTERM $afterMs ms later', async ({ command, afterMs }) => {
  const launched = await launch(command);
  await within('the first handler', launched.caught);
  await pause(afterMs);
  await launched.terminate();
  expect(await within('the end', launched.exited)).toEqual([0, null]);
  // A runtime prints this if its process is ended during a run.
  expect(launched.logged()).not.toMatch(/terminate called/);
});

test('the encoder starts where its priority is lower than it asks for, and it may not raise it', async () => {
  const launched = await launch(commands.encoder, 'nice', '-n', '10');
  await expect.poll(launched.printed).toContain('"ready"');
});
