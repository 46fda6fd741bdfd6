/**
 * Backups and restores that are cut off, by Ctrl-C at any step, by `kill -9` at any time and by a full disk: what was there
 * stays as it was, what is there is whole, and the next one succeeds.
 */
import { watch } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { constants, getPriority } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readArchive } from '../../../src/cli/backup/archive-reader.ts';
import { Interruption } from '../../../src/cli/failure.ts';
import { rounds } from '../../rounds.ts';
import { Disk, noDisks } from '../../support/machine/disk.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { run, start } from '../../support/commands/command-process.ts';
import type { Finished } from '../../support/commands/command-here.ts';
import { eventually } from '../../support/running/eventually.ts';
import { announceRandom } from '../../support/running/random.ts';
import { documentsOf, openServiceStage } from '../../support/stages/service-stage.ts';
import { backUp, restoreTo } from './commands.ts';

const random = announceRandom('interrupted backups and restores');
const kills = rounds({ short: 3, nightly: 300 });
let source: string;
let whole: string;
let names: readonly string[];
beforeAll(async () => {
  const stage = await openServiceStage(await newDirectory(), { segmentTokenVectorsMax: 20_000 });
  const tenant = await stage.newTenant({ documents: 10_000 });
  const indexId = await tenant.createIndex();
  const words = Array.from({ length: 300 }, (_word, place) => `w${place}`).join(' ');
  for (let batch = 0; batch < 5; batch += 1) {
    const texts = Array.from({ length: 100 }, (_text, place) => [`d${batch}-${place}`, `${words} ${place}`]);
    const documents = documentsOf(Object.fromEntries(texts) as Record<string, string>);
    await stage.service.upsertDocuments(tenant.context(), indexId, documents);
  }
  await stage.service.drain();
  source = stage.directory;
  whole = path.join(await newDirectory(), 'whole.tar');
  await backUp(source, whole);
  const restored = path.join(await newDirectory(), 'data');
  await restoreTo(restored, whole);
  names = await filesIn(restored);
});

let place: string;
beforeEach(async () => {
  place = await newDirectory();
});

async function filesIn(directory: string): Promise<readonly string[]> {
  return (await readdir(directory, { recursive: true })).toSorted();
}

/** Aborted when it has been asked so often. */
function abortedAfter(steps: number): { readonly signal: AbortSignal; readonly asked: () => number } {
  let asked = 0;
  const throwIfAborted = (): void => {
    asked += 1;
    if (asked > steps) throw new Interruption('SIGINT');
  };
  return { signal: { throwIfAborted } as AbortSignal, asked: () => asked };
}

it('a backup gives way to searches: it works at a lower priority', async () => {
  const backup = start(['backup', path.join(place, 'a.tar')], { environment: { MAXSIMD_DATA_DIR: source } });
  await eventually(() => getPriority(backup.process.pid) >= constants.priority.PRIORITY_BELOW_NORMAL, {
    everyMs: 5,
  });
  expect((await backup.finished).exitCode).toBe(0);
});

describe('Ctrl-C', () => {
  it('at any step of a backup leaves what was there', async () => {
    const file = path.join(place, 'a.tar');
    await cp(whole, file);
    const before = await readFile(file);
    const counted = abortedAfter(Infinity);
    await backUp(source, path.join(place, 'b.tar'), counted);
    await rm(path.join(place, 'b.tar'));
    const steps = counted.asked();
    expect(steps).toBeGreaterThan(20);
    for (const step of stepsOf(steps)) {
      await expect(backUp(source, file, abortedAfter(step)), `step ${step}`).rejects.toMatchObject({
        exitCode: 130,
      });
      expect(await readdir(place)).toEqual(['a.tar']);
      expect((await readFile(file)).equals(before)).toBe(true);
    }
  });

  it('at any step of a restore leaves nothing', async () => {
    const counted = abortedAfter(Infinity);
    await restoreTo(path.join(place, 'data'), whole, counted);
    await rm(path.join(place, 'data'), { recursive: true });
    const steps = counted.asked();
    expect(steps).toBeGreaterThan(20);
    for (const step of stepsOf(steps)) {
      const work = restoreTo(path.join(place, 'data'), whole, abortedAfter(step));
      await expect(work, `step ${step}`).rejects.toMatchObject({ exitCode: 130 });
      expect(await readdir(place)).toEqual([]);
    }
  });
});

describe('kill -9', () => {
  it('of a backup leaves the archive of before, or the new one', async () => {
    const environment = { MAXSIMD_DATA_DIR: source };
    const file = path.join(place, 'a.tar');
    const struck = await killed(kills, 'a.tar.partial', ['backup', file], environment, async () => {
      const left = await readdir(place);
      if (left.includes('a.tar')) await readArchive(file, { onBytes: () => undefined });
      return left.includes('a.tar.partial');
    });
    console.log(`${struck} of ${kills} kills struck a backup at work`);
    expect((await run(['backup', file], { environment })).exitCode).toBe(0);
    expect(await readdir(place)).toEqual(['a.tar']);
    expect(await readArchive(file, { onBytes: () => undefined })).toMatchObject({
      manifest: { key_pepper: false },
    });
  });

  it('of a restore leaves the data directory empty, or whole', async () => {
    const data = path.join(place, 'data');
    const environment = { MAXSIMD_DATA_DIR: data };
    const struck = await killed(kills, 'data.restoring', ['restore', whole], environment, async () => {
      const left = await readdir(place);
      if (left.includes('data')) {
        expect(await filesIn(data)).toEqual(names);
        await rm(data, { recursive: true });
      }
      return left.includes('data.restoring');
    });
    console.log(`${struck} of ${kills} kills struck a restore at work`);
    await mkdir(data);
    expect((await run(['restore', whole], { environment })).exitCode).toBe(0);
    expect(await readdir(place)).toEqual(['data']);
    expect(await filesIn(data)).toEqual(names);
  });
});

describe.skipIf(noDisks !== undefined)('a full disk', () => {
  it('fails a backup, which leaves nothing', async () => {
    const disk = await Disk.make();
    const environment = { MAXSIMD_DATA_DIR: source, ...disk.environment };
    const file = path.join(disk.directory, 'a.tar');
    disk.setFreeBytes(1024 * 1024);
    const { exitCode, stderr } = await run(['backup', file], { environment });
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/ENOSPC|no space/)]);
    expect(await readdir(disk.directory)).toEqual([]);
    disk.setFreeBytes(undefined);
    expect((await run(['backup', file], { environment })).exitCode).toBe(0);
  });

  it('fails a restore, which leaves nothing', async () => {
    const disk = await Disk.make();
    const environment = { MAXSIMD_DATA_DIR: path.join(disk.directory, 'data'), ...disk.environment };
    disk.setFreeBytes(1024 * 1024);
    const { exitCode, stderr } = await run(['restore', whole], { environment });
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/ENOSPC|no space/)]);
    expect(await readdir(disk.directory)).toEqual([]);
  });
});

/** The first, the last, and some between. */
function stepsOf(count: number): readonly number[] {
  const between = Array.from({ length: rounds({ short: 4, nightly: 200 }) }, () =>
    random.integer(1, count - 2),
  );
  return [0, ...between, count - 1];
}

/** Kills a command again and again soon after its work directory appears; counts how often `look` says that it struck. */
async function killed(
  count: number,
  workDirectory: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  look: () => Promise<boolean>,
): Promise<number> {
  let struck = 0;
  for (let round = 0; round < count; round += 1) {
    const command = start(args, { environment });
    await appears(workDirectory, command.finished);
    await delay(random.integer(0, 60));
    command.process.kill('SIGKILL');
    await command.finished;
    if (await look()) struck += 1;
  }
  return struck;
}

/** Or the command is over. */
async function appears(name: string, finished: Promise<Finished>): Promise<void> {
  const seen = Promise.withResolvers<void>();
  const watcher = watch(place, (_event, changed) => {
    if (changed === name) seen.resolve();
  });
  await Promise.race([seen.promise, finished]);
  watcher.close();
}
