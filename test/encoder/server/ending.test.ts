/** An encoder process that is asked to end does so by itself, with code 0, at any time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { callOptions, encodeAll } from '../../support/encoder/encoders.ts';
import { eventually } from '../../support/running/eventually.ts';
import { defaultModel } from '../../support/encoder/models.ts';

const entry = path.resolve(import.meta.dirname, '../../../src/encoder/server/main.ts');

/** An encoder of the default model, whose runs of several thousand tokens take most of a second. */
async function startEncoder() {
  const address = `unix:${path.join(await newDirectory(), 'encoder.sock')}`;
  const named = { listen: address, 'model-dir': defaultModel, provider: 'cpu', threads: '1' };
  const args = Object.entries({ ...named, 'batch-tokens': '4096' }).map(
    ([name, value]) => `--${name}=${value}`,
  );
  const child = spawn(process.execPath, [entry, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  return { address, child, errors: () => errors };
}

/** Asks it to end. Returns its exit code, or the signal that ended it. */
async function terminated(child: ChildProcess): Promise<unknown> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  const [code, signal] = (await closed) as [number | null, string | null];
  return code ?? signal;
}

describe('an encoder that is asked to end', () => {
  it('ends with 0 while it warms up', async () => {
    const { address, child, errors } = await startEncoder();
    const probe = new EncoderProbe(address);
    onTestFinished(() => probe.close());
    // An encoder answers as soon as it listens, and that is before it serves.
    await eventually(async () => (await probe.statistics(1000)) !== undefined);
    expect(await terminated(child)).toBe(0);
    expect(errors()).not.toContain('terminate');
  });

  it('ends with 0 in the middle of a run that its caller has left', async () => {
    const { address, child, errors } = await startEncoder();
    const pool = createEncoderPool({ addresses: [address] });
    const probe = new EncoderProbe(address);
    onTestFinished(async () => {
      probe.close();
      await pool.close();
    });
    await eventually(() => pool.ready());
    const leaving = new AbortController();
    const work = encodeAll(
      pool,
      Array.from({ length: 20 }, () => 'a '.repeat(500)),
      {
        ...callOptions(pool),
        signal: leaving.signal,
        chunking: { maxTokens: 500, overlapTokens: 0, minimumChunkTokens: 1 },
      },
    );
    work.catch(() => undefined);
    await eventually(async () => ((await probe.statistics(1000))?.batches ?? 0) > 0);
    leaving.abort(new Error('gone'));
    expect(await terminated(child)).toBe(0);
    expect(errors()).not.toContain('terminate');
  });
});
