/**
 * Cuts of power at random points of a mixed load with seals and merges, many of them from the log of one run: each time
 * the disk is made as it may be then (`disk-image.ts`), opened and compared with what was acknowledged. The next run
 * begins with what one of these cuts left, so that opening is cut, too.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { openReader, type Connection } from '../../../src/catalog/sqlite/connection.ts';
import { readOperations } from '../../../src/catalog/sqlite/reads/read-operations.ts';
import type { ReaderThreadData } from '../../../src/catalog/sqlite/threads/reader-thread.ts';
import type { Operations, ThreadOptions } from '../../../src/catalog/sqlite/threads/thread-client.ts';
import { rounds } from '../../rounds.ts';
import { Disk, noDisks } from '../../support/machine/disk.ts';
import { syncedFiles } from '../../support/machine/disk-state.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { cutPower, type Left } from './cutting.ts';
import type { StageIds } from './load.ts';
import { hangMs } from '../../support/running/eventually.ts';

if (noDisks !== undefined) console.log(`skipped: ${noDisks}`);

const runs = rounds({ short: 2, nightly: 100 });
const cutsPerRun = rounds({ short: 12, nightly: 100 });
const operationsPerRun = 120;
/** A run in so many begins with nothing. */
const lineage = 8;
const build = path.join(import.meta.dirname, '../../../build');
const counterFile = path.join(build, 'power-cuts.json');

/** Threads that read start in 50 ms, and each cut would need two: here they read on the calling thread. */
vi.mock(import('../../../src/catalog/sqlite/threads/thread-client.ts'), async (original) => {
  const { ThreadClient } = await original();
  return {
    ThreadClient: class extends ThreadClient<Operations> {
      readonly #file: string | undefined;
      #connection: Connection | undefined;

      constructor(options: ThreadOptions) {
        super(options);
        if (options.entry === 'reader-thread') this.#file = (options.data as ReaderThreadData).path;
      }

      override async request(operation: string, ...input: unknown[]): Promise<unknown> {
        if (this.#file === undefined) return super.request(operation, ...input);
        this.#connection ??= openReader(this.#file);
        return (readOperations(this.#connection) as Operations)[operation]?.(...input);
      }

      override close(): Promise<void> {
        this.#connection?.close();
        return super.close();
      }
    } as typeof ThreadClient,
  };
});

interface Counter {
  /** The seed of the next run. */
  readonly run: number;
  /** Made so far. */
  readonly cuts: number;
}

describe.skipIf(noDisks !== undefined)('a cut of power', () => {
  test('loses nothing that was acknowledged', { timeout: 12 * 3_600_000 }, async () => {
    let counter = readCounter();
    let left: Left | undefined;
    const last = counter.run + runs;
    while (counter.run < last) {
      const { run } = counter;
      left = await runAndCut({ run, from: run % lineage === 0 ? undefined : left });
      counter = { run: run + 1, cuts: counter.cuts + cutsPerRun };
      writeFileSync(counterFile, JSON.stringify(counter));
    }
    console.log(`cuts of power so far: ${counter.cuts}`);
    expect(counter.run).toBe(last);
  });

  test.each(['segments', 'the log of the catalog', 'directories'] as const)(
    'is found to lose something where syncs of %s do nothing',
    async (lost) => {
      await expect(runAndCut({ run: 1, lost })).rejects.toThrow('the cut');
    },
  );
});

/** Counts go on from run to run of the battery. */
function readCounter(): Counter {
  if (!existsSync(counterFile)) return { run: 1, cuts: 0 };
  return JSON.parse(readFileSync(counterFile, 'utf8')) as Counter;
}

interface Run {
  /** Also the seed. */
  readonly run: number;
  readonly from?: Left | undefined;
  /** A planted fault: syncs of these files do nothing. */
  readonly lost?: keyof typeof syncedFiles;
}

/** Returns what the last cut left. */
async function runAndCut({ run, from, lost }: Run): Promise<Left> {
  const disk = await Disk.make({ logged: true, ...(from && { directory: from.directory }) });
  if (lost !== undefined) disk.state.set('lostSyncs', syncedFiles[lost]);
  await load(disk, run, from?.ids);
  const evidence = lost === undefined ? build : await newDirectory();
  const left = await cutPower({ disk, from, cuts: cutsPerRun, seed: run, evidence });
  disk.remove();
  return left;
}

async function load(disk: Disk, seed: number, ids: StageIds | undefined): Promise<void> {
  const script = path.join(import.meta.dirname, 'load-process.ts');
  const args = [script, disk.directory, String(seed), String(operationsPerRun)];
  if (ids !== undefined) args.push(ids.tenantId, ids.indexId);
  const env = { ...process.env, ...disk.environment };
  await promisify(execFile)(process.execPath, args, { env, timeout: hangMs });
}
