/** Encoders that get less memory than they need. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import { callOptions, encodeAll, encodersOfTest } from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';
import { defaultModel } from '../../support/encoder/models.ts';

const mebibyte = 2 ** 20;

/** Bytes of memory that a process may still allocate. */
function limitMemory(processId: number, moreBytes: number): void {
  const status = readFileSync(`/proc/${processId}/status`, 'utf8');
  const usedBytes = Number(/^VmData:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  execFileSync('prlimit', [`--pid=${processId}`, `--data=${usedBytes + moreBytes}`]);
}

describe.runIf(process.platform === 'linux')('an encoder without memory for a batch', () => {
  it('answers or refuses soon, keeps nothing, and serves the next request with the same rows', async () => {
    const { pool, supervisor } = await encodersOfTest({
      modelDirectories: [defaultModel],
      extraArguments: ['--batch-tokens', '200000'],
    });
    const ask = async () => pool.encodeQuery('late interaction', callOptions(pool));
    const { vectors } = await ask();
    limitMemory(supervisor.processIds()[0]!, 192 * mebibyte);

    const chunking = { maxTokens: 300, overlapTokens: 0, minimumChunkTokens: 1 };
    const texts = Array.from({ length: 40 }, () => 'a '.repeat(300));
    const startedAt = performance.now();
    // A batch of twelve thousand tokens takes more. An encoder that ends for it is restarted without the limit.
    const outcome = await encodeAll(pool, texts, { chunking, deadlineMs: Date.now() + 600_000 }).then(
      () => 'answered',
      (error: unknown) => (error as { readonly code: string }).code,
    );
    // The parts of the batch run alone afterwards, which may succeed. A hang or another failure must not happen. A busy
    // machine takes its time.
    expect(['answered', 'service_unavailable']).toContain(outcome);
    expect(performance.now() - startedAt).toBeLessThan(hangMs);

    await eventually(() => pool.ready());
    expect((await ask()).vectors).toEqual(vectors);
    const probe = new EncoderProbe(supervisor.addresses[0]!);
    await eventually(async () => (await probe.statistics(hangMs))?.queuedRequests === 0);
    expect(await probe.statistics(hangMs)).toMatchObject({ queuedTokens: 0 });
    probe.close();
  });
});
