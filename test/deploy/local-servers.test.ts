/** The servers that `npm run cluster` and the tests install and start. */
import { execFile } from 'node:child_process';
import { chmod, readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { installServers } from '../../deploy/local/install.ts';
import { startPostgres } from '../../deploy/local/postgres.ts';
import { portOf } from '../../deploy/local/describe-cluster.ts';
import { freePort } from '../../deploy/local/free-port.ts';
import { queryDatabase, serversMs } from '../support/cluster/servers.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { repositoryRoot } from '../support/running/launch.ts';

it('PostgreSQL begins again with the data that it finds', { timeout: serversMs }, async () => {
  const { postgres: programs } = await installServers();
  const parent = await newDirectory();
  await chmod(parent, 0o755);
  const directory = path.join(parent, 'postgres');
  const first = await startPostgres({ programs, directory, port: await freePort() });
  await queryDatabase(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
  await first.stop('SIGQUIT');
  const second = await startPostgres({ programs, directory, port: await freePort() });
  expect(await queryDatabase(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  await second.stop();
});

it('processes that install the same at once install it once, also when the first dies', async () => {
  const folder = path.join(await newDirectory(), 'tools');
  const runs = `${folder}.runs`;
  const program = (death: string): string => `
    import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
    import { setTimeout as pause } from 'node:timers/promises';
    import { unlessStamped } from './clients/tools/install.ts';
    await unlessStamped(${JSON.stringify(folder)}, 'pins', async () => {
      appendFileSync(${JSON.stringify(runs)}, 'run ');
      await pause(300);
      ${death}
      writeFileSync(${JSON.stringify(path.join(folder, 'tool'))}, 'whole');
    });`;
  const install = (death = '') =>
    promisify(execFile)(process.execPath, ['--input-type=module-typescript', '--eval', program(death)], {
      cwd: repositoryRoot,
    });
  await expect(install("process.kill(process.pid, 'SIGKILL');")).rejects.toMatchObject({ signal: 'SIGKILL' });
  await Promise.all([install(), install(), install()]);
  expect(await readFile(path.join(folder, 'tool'), 'utf8')).toBe('whole');
  expect(await readFile(runs, 'utf8')).toBe('run run ');
});

it('the balancer has the port that was chosen, or fails; the usual one, or another', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port: taken } = server.address() as AddressInfo;
  const free = await freePort();
  expect(await portOf(undefined, free)).toBe(free);
  expect(await portOf(undefined, taken)).not.toBe(taken);
  expect(await portOf(String(free))).toBe(free);
  await expect(portOf(String(taken))).rejects.toThrow(
    `MAXSIMD_HTTP_PORT: port ${taken} of 127.0.0.1 is in use`,
  );
  await expect(portOf('abc')).rejects.toThrow('MAXSIMD_HTTP_PORT must be a whole number');
});
