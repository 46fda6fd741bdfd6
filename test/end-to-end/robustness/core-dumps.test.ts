/** The core file of a crash would hold texts: a service whose processes crash leaves none, whatever the limits allow. */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { createTenant } from '../../support/commands/command-line.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { eventually } from '../../support/running/eventually.ts';
import { encodersOf, isAlive } from '../../support/running/processes.ts';
import { tinyModel } from '../../support/run-benchmark.ts';
import { startServer } from '../../support/running/server.ts';
import { makeIndex } from '../../support/running/requests.ts';

const isLinux = process.platform === 'linux';
/** Where a kernel gives core files to a program, or keeps them elsewhere, the tests cannot see them. */
const seesCores = isLinux && !/^[|/]/.test(readFileSync('/proc/sys/kernel/core_pattern', 'utf8'));

async function coresIn(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory, { recursive: true });
  return names.filter((name) => /(^|\/)core(\.\d+)?$/.test(name));
}

it.runIf(seesCores)('a plain process that crashes leaves a core file', async () => {
  const cwd = await newDirectory();
  const crash = 'ulimit -c unlimited; exec "$0" -e "process.kill(process.pid, \'SIGSEGV\')"';
  const { signal } = spawnSync('bash', ['-c', crash, process.execPath], { cwd });
  expect(signal).toBe('SIGSEGV');
  expect(await coresIn(cwd)).toHaveLength(1);
});

it.runIf(isLinux)('an encoder and a server that crash during an upsert leave none', async () => {
  const server = await startServer({ env: tinyModel });
  const { client } = await createTenant(server);
  const { id } = await makeIndex(client);
  const [encoder] = await encodersOf(server.pid);
  for (const pid of [server.pid, encoder!.pid]) {
    expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max core file size +0 /m);
    // A kernel that gives core files to a program does not look at the limit. Without it, too, there is none.
    await promisify(execFile)('prlimit', ['--pid', String(pid), '--core=unlimited']);
  }
  const text = 'a text that nobody else may read '.repeat(200);
  const upsert = client.upsert(id, [{ doc_id: 'one', text }]).catch(() => undefined);
  process.kill(encoder!.pid, 'SIGSEGV');
  await eventually(async () => !(await isAlive(encoder!.pid)));
  server.signal('SIGABRT');
  expect(await server.exited).toMatchObject({ signal: 'SIGABRT' });
  await upsert;
  expect(await coresIn(server.scratch.root)).toEqual([]);
  await server.scratch.remove();
});
