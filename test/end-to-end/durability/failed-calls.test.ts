/**
 * Every call that changes or syncs a file fails in turn, with EIO and with ENOSPC, once and from there on. Afterwards the
 * power is cut at random points of it all: a sync that failed must not be taken for one that went well later.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { rounds } from '../../rounds.ts';
import { Disk, noDisks } from '../../support/machine/disk.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { announceRandom } from '../../support/running/random.ts';
import { cutPower } from './cutting.ts';

if (noDisks !== undefined) console.log(`skipped: ${noDisks}`);

/** Calls from one that fails to the next. */
const stride = rounds({ short: 120, nightly: 1 });
const cuts = rounds({ short: 5, nightly: 200 });
const { EIO, ENOSPC } = constants.errno;

interface Seen {
  readonly failures: number;
  readonly refused: number;
}

async function failCalls(disk: Disk, seed: number, errnos: readonly number[]): Promise<Seen> {
  const script = path.join(import.meta.dirname, 'failed-calls-process.ts');
  const args = [script, disk.directory, seed, stride, ...errnos].map(String);
  const env = { ...process.env, ...disk.environment };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return JSON.parse(stdout) as Seen;
}

describe.skipIf(noDisks !== undefined)('a call that fails', () => {
  test(
    'is refused, loses nothing and leaves a service that goes on',
    { timeout: 12 * 3_600_000 },
    async () => {
      const random = announceRandom('failed calls');
      const disk = await Disk.make({ logged: true });
      const seen = await failCalls(disk, random.integer(0, 1_000_000), [EIO, ENOSPC]);
      console.log(JSON.stringify(seen));
      expect(seen.refused).toBeGreaterThan(0);
      expect(seen.failures).toBeGreaterThan(seen.refused / 2);
      await cutPower({ disk, cuts, seed: random.seed, evidence: await newDirectory(), usageWaits: true });
    },
  );

  test('is found where it says that it succeeded', async () => {
    const disk = await Disk.make({ logged: true });
    await expect(failCalls(disk, 1, [0])).rejects.toThrow('errno 0');
  });
});
