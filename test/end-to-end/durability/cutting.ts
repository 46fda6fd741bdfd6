/** Cuts of power at random points of what a process has done to a logged disk, each opened and compared with its notes. */
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { Disk } from '../../support/machine/disk.ts';
import { everythingSurvives, randomSurvival, type DiskImage } from '../../support/machine/disk-image.ts';
import type { DiskLogEntry } from '../../support/machine/disk-log.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { Expectation, type Contents } from './expectation.ts';
import type { Note, StageIds } from './load.ts';

/** A directory as a power cut left it, and the contents that were found in it. */
export interface Left {
  readonly directory: string;
  readonly ids: StageIds | undefined;
  readonly contents: Contents;
}

export interface Cutting {
  readonly disk: Disk;
  /** The directory that the process started from; absent = an empty one. */
  readonly from?: Left | undefined;
  readonly cuts: number;
  readonly seed: number;
  /** Where a cut that is not survived stays, to be looked at. */
  readonly evidence: string;
  /** Usage waited in memory while calls failed: that it is acknowledged and the log is synced says nothing then. */
  readonly usageWaits?: boolean;
}

/** Returns what the last cut left. */
export async function cutPower({ disk, from, cuts, seed, evidence, usageWaits }: Cutting): Promise<Left> {
  const random = seededRandom(seed);
  const { entries: log, image } = disk.recording();
  const expectation = new Expectation(from?.ids, from?.contents);
  const replay = new Replay(image, expectation, usageWaits ?? false);
  const entries = log.next();
  const places = Array.from({ length: cuts }, () => Math.floor(random() * entries.length));
  const upcoming = places.toSorted((a, b) => a - b);
  let left: Left | undefined;
  for (const [place, entry] of entries.entries()) {
    replay.apply(entry);
    while (upcoming[0] === place) {
      upcoming.shift();
      const cut = new Cut(image, Math.floor(random() * 2 ** 31));
      left = await cut.survive(expectation.copy(), {
        evidence: path.join(evidence, `power-cut-${seed}-${place}`),
        isLast: upcoming.length === 0,
      });
    }
  }
  await expectEverythingSeen(image, disk.directory);
  if (left === undefined) throw new Error('this is a bug: no cut');
  return left;
}

/** Follows the log with the disk and with what is expected of it. */
class Replay {
  readonly #image: DiskImage;
  readonly #expectation: Expectation;
  readonly #usageWaits: boolean;
  /** Searches acknowledged when a sync of the ledger's log began. */
  readonly #syncs = new Map<number, number>();

  constructor(image: DiskImage, expectation: Expectation, usageWaits: boolean) {
    this.#image = image;
    this.#expectation = expectation;
    this.#usageWaits = usageWaits;
  }

  apply(entry: DiskLogEntry): void {
    if (entry.kind === 'note') this.#expectation.take(JSON.parse(entry.data.toString()) as Note);
    this.#image.apply(entry);
    if (this.#usageWaits) return;
    if (entry.kind === 'syncBegin' && entry.inode === this.#image.inodeOf('usage.db-wal')) {
      this.#syncs.set(entry.number, this.#expectation.searches);
    }
    if (entry.kind === 'syncEnd') this.#expectation.searchesAreSynced(this.#syncs.get(entry.number) ?? 0);
  }
}

class Cut {
  readonly #image: DiskImage;
  readonly #survival: number;

  /** `survival` decides what of the unsynced is there. */
  constructor(image: DiskImage, survival: number) {
    this.#image = image;
    this.#survival = survival;
  }

  async survive(
    expectation: Expectation,
    { evidence, isLast }: { readonly evidence: string; readonly isLast: boolean },
  ): Promise<Left> {
    const parent = await newDirectory();
    const directory = path.join(parent, 'left');
    const opened = this.#leave(path.join(parent, 'opened'));
    try {
      const contents = await expectation.check(opened, this.#survival % 5 === 0);
      rmSync(opened, { recursive: true });
      if (isLast) this.#leave(directory);
      return { directory, ids: expectation.ids, contents };
    } catch (error) {
      throw new Error(`the cut that left ${this.#leave(evidence)}`, { cause: error });
    }
  }

  #leave(directory: string): string {
    this.#image.write(directory, randomSurvival(seededRandom(this.#survival)));
    return directory;
  }
}

/** The log has seen all that was done: with everything kept it gives the directory as it is. */
async function expectEverythingSeen(image: DiskImage, directory: string): Promise<void> {
  const replayed = path.join(await newDirectory(), 'replayed');
  image.write(replayed, everythingSurvives);
  expect(filesOf(replayed)).toEqual(filesOf(directory));
  for (const file of filesOf(directory)) {
    const [wanted, found] = [directory, replayed].map((at) => readFileSync(path.join(at, file)));
    expect(found?.equals(wanted ?? Buffer.alloc(0)), file).toBe(true);
  }
}

/** Without SQLite's index of its log, which is written through a mapping, and the reserve, of which the log has the length. */
function filesOf(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm') && entry.name !== 'reserve')
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
    .toSorted();
}
