import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createEncoderPool, type EncoderPoolOptions } from '../../../src/encoder/client/pool.ts';
import { makeSocketDirectory } from '../../../src/encoder/protocol/socket-directory.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { type Certificate, makeCertificate } from '../../support/network/tls.ts';
import { callOptions, encodeAll, encodersOfTest, spawnEncoders } from '../../support/encoder/encoders.ts';
import { eventually, pause } from '../../support/running/eventually.ts';
import { defaultModel, tinyModel } from '../../support/encoder/models.ts';

const entry = path.resolve(import.meta.dirname, '../../../src/encoder/server/main.ts');

/** Starts a program and returns the first line that it prints. */
async function firstLine(
  file: string,
  args: readonly string[],
): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, line };
}

/** Arguments of an encoder of the tiny model. */
function plain(address: string): string[] {
  const named = {
    listen: address,
    'model-dir': tinyModel,
    provider: 'cpu',
    threads: '1',
    'log-level': 'error',
  };
  return Object.entries(named).flatMap(([name, value]) => [`--${name}`, value]);
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch {
    return false;
  }
}

it.each([
  [
    'longer than paths of sockets may be',
    'a'.repeat(90),
    /^the temporary directory .+ is \d+ bytes too long .+; TMPDIR/,
  ],
  ['not there', 'none', /^the temporary directory .+ cannot hold sockets .ENOENT.; TMPDIR names another$/],
])('a temporary directory that is %s is named', async (_, name, message) => {
  vi.stubEnv('TMPDIR', path.join(await newDirectory(), name));
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const supervisor of [undefined, 'name'])
    await expect(makeSocketDirectory(supervisor)).rejects.toThrow(message);
});

describe('the supervisor', () => {
  it('keeps its sockets in a private directory and removes it on close', async () => {
    const encoders = await encodersOfTest({ processes: 2 });
    const sockets = encoders.supervisor.addresses.map((address) => address.slice('unix:'.length));
    const directory = path.dirname(sockets[0]!);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const ids = encoders.supervisor.processIds();
    await encoders.close();
    await expect(stat(directory)).rejects.toThrow('ENOENT');
    expect(ids.filter(isAlive)).toEqual([]);
  });

  it('keeps the addresses across restarts', async () => {
    const { supervisor, pool } = await encodersOfTest();
    const [address] = supervisor.addresses;
    const [killed] = supervisor.processIds();
    process.kill(killed!, 'SIGKILL');
    // The pool may be without an encoder for a time too short to be seen.
    await eventually(() => supervisor.processIds().some((id) => id !== killed));
    await eventually(async () =>
      pool.encodeQuery('the', callOptions(pool)).then(
        () => true,
        () => false,
      ),
    );
    expect(supervisor.addresses).toEqual([address]);
  });

  it('replaces a process that never gets ready', async () => {
    const { supervisor, logs } = await spawnEncoders({ startMs: 5000 });
    onTestFinished(async () => supervisor.close());
    const [first] = supervisor.processIds();
    process.kill(first!, 'SIGSTOP');
    await supervisor.ready;
    expect(supervisor.processIds()).toHaveLength(1);
    expect(supervisor.processIds()).not.toContain(first);
    expect(isAlive(first!)).toBe(false);
    expect(logs.join('\n')).toContain('encoder is not ready after 5000 ms');
  });

  it('replaces a process that outgrows its memory bound', async () => {
    const { supervisor, logs } = await spawnEncoders({ residentBytesMax: () => 1 });
    onTestFinished(async () => supervisor.close());
    const [first] = supervisor.processIds();
    await supervisor.ready;
    await eventually(() => supervisor.processIds().length === 1 && supervisor.processIds()[0] !== first);
    expect(logs.join('\n')).toContain('outgrew its memory bound');
  });

  it('replaces a process whose batch is stuck', async () => {
    // The batches of the start, and those of the load, are far from this on a busy machine, too.
    const stuckMs = 10_000;
    const { supervisor, pool, logs } = await encodersOfTest({
      modelDirectories: [defaultModel],
      extraArguments: ['--stuck-ms', String(stuckMs)],
    });
    const [first] = supervisor.processIds();
    const isFirst = (): boolean => supervisor.processIds()[0] === first;
    const chunking = { maxTokens: 500, overlapTokens: 0, minimumChunkTokens: 1 };
    const texts = Array.from({ length: 50 }, () => 'a '.repeat(500));
    const load = (async () => {
      while (isFirst()) await encodeAll(pool, texts, { chunking }).catch(() => undefined);
    })();
    // A batch that runs while the process is stopped has run for too long when it goes on. Once in a while none runs.
    for (;;) {
      await pause(2_000);
      if (!isFirst()) break;
      process.kill(first!, 'SIGSTOP');
      await pause(stuckMs);
      process.kill(first!, 'SIGCONT');
    }
    await eventually(() => supervisor.processIds().length === 1);
    expect(logs.join('\n')).toMatch(/a batch has been running for \d+ ms/);
    await pool.close();
    await load;
  });

  /** A process that supervises an encoder, and the directory of its sockets. */
  async function supervising(name: string) {
    const file = path.join(import.meta.dirname, 'supervising-process.ts');
    const { child, line } = await firstLine(file, [tinyModel, name]);
    const { encoder, address } = JSON.parse(line) as { encoder: number; address: string };
    return { child, encoder, directory: path.dirname(address.slice('unix:'.length)) };
  }

  it('that is killed takes its encoders and their sockets with it', async () => {
    const { child, encoder, directory } = await supervising(randomUUID());
    expect(isAlive(encoder)).toBe(true);
    expect(existsSync(directory)).toBe(true);
    child.kill('SIGKILL');
    await eventually(() => !isAlive(encoder));
    expect(existsSync(directory)).toBe(false);
  });

  it('that is killed with its encoders leaves sockets to the next one of its name', async () => {
    const name = randomUUID();
    const { child, encoder, directory } = await supervising(name);
    // The old process, before it is replaced.
    process.kill(encoder, 'SIGKILL');
    child.kill('SIGKILL');
    await eventually(() => !isAlive(encoder));
    const other = await makeSocketDirectory(undefined);
    onTestFinished(() => rmSync(other, { recursive: true }));
    expect(existsSync(directory)).toBe(true);
    const next = await makeSocketDirectory(name);
    onTestFinished(() => rmSync(next, { recursive: true }));
    expect([directory, other, next].map(existsSync)).toEqual([false, true, true]);
    expect(next).not.toBe(directory);
  });
});

describe('an encoder process by itself', () => {
  async function freshCertificate(): Promise<Certificate> {
    return makeCertificate(await newDirectory());
  }

  /** An encoder that speaks TLS and, given their authority, asks clients for a certificate. */
  async function secured(clients?: Certificate): Promise<{
    address: string;
    tls: NonNullable<EncoderPoolOptions['tls']>;
  }> {
    const { certificate, certificateFile, keyFile } = await freshCertificate();
    const secure = ['--tls-cert', certificateFile, '--tls-key', keyFile];
    if (clients !== undefined) secure.push('--tls-client-ca', clients.certificateFile);
    const { line } = await firstLine(entry, [...plain('127.0.0.1:0'), ...secure]);
    const { address } = JSON.parse(line) as { address: string };
    return { address, tls: { ca: Buffer.from(certificate) } };
  }

  async function isServed(options: EncoderPoolOptions): Promise<boolean> {
    const pool = createEncoderPool({ healWaitMs: 1500, ...options });
    onTestFinished(async () => pool.close());
    const named = callOptions(pool, { model: { name: 'colbert-tiny', version: '1' } });
    return pool.encodeQuery('the', named).then(
      () => true,
      () => false,
    );
  }

  it('speaks TLS, and only that', async () => {
    const { address, tls } = await secured();
    expect(await isServed({ addresses: [address], tls })).toBe(true);
    expect(await isServed({ addresses: [address] })).toBe(false);
  });

  it('serves clients with a certificate of its authority, and turns away those with none or a foreign one', async () => {
    const client = await freshCertificate();
    const { address, tls } = await secured(client);
    const shown = async ({ certificate, keyFile }: Certificate) => ({
      ...tls,
      certificate: Buffer.from(certificate),
      key: await readFile(keyFile),
    });
    expect(await isServed({ addresses: [address], tls: await shown(client) })).toBe(true);
    expect(await isServed({ addresses: [address], tls })).toBe(false);
    expect(await isServed({ addresses: [address], tls: await shown(await freshCertificate()) })).toBe(false);
    expect(await isServed({ addresses: [address], tls: await shown(client) })).toBe(true);
  });

  it('is not believed when its certificate is of another authority', async () => {
    const { address } = await secured();
    const { certificate } = await freshCertificate();
    expect(await isServed({ addresses: [address], tls: { ca: Buffer.from(certificate) } })).toBe(false);
  });

  it('listens again on the socket that a killed one left behind', async () => {
    const address = `unix:${path.join(await newDirectory(), 'encoder.sock')}`;
    const args = plain(address);
    const { child } = await firstLine(entry, args);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await firstLine(entry, args);
    expect(await isServed({ addresses: [address] })).toBe(true);
  });
});
