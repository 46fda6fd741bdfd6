import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from './sample.ts';
import { hangMs } from '../support/running/eventually.ts';

const directory = temporaryDirectory();
const engine = createEngine({ threads: 2, kernel: 'auto' });
afterAll(() => {
  engine.close();
  directory[Symbol.dispose]();
});

describe('process and threads', () => {
  it.each(['exit', 'return', 'terminate'])(
    'a process that ends by `%s` with work in flight neither hangs nor crashes',
    async (mode) => {
      const child = spawn(process.execPath, [path.join(import.meta.dirname, 'busy-process.ts'), mode], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [output, errors, [exitCode, signal]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'exit') as Promise<[number | null, string | null]>,
      ]);
      expect({ output, exitCode, signal, errors }).toEqual({
        output: 'done\n',
        exitCode: 0,
        signal: null,
        errors: '',
      });
    },
  );

  it('an open engine without work does not keep the process', () => {
    const source = `import { createEngine } from '${path.resolve(import.meta.dirname, '../../src/index/engine/native.ts')}';
      createEngine({ threads: 2, kernel: 'auto' }).createIndex({ dim: 8, exactTokenVectorsMax: 0 });`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
      timeout: hangMs,
    });
    expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: '' });
  });

  it('concurrent syncs of a segment all settle', async () => {
    const clusters = new Clusters(seededRandom(2), 16, 5);
    const index = engine.createIndex({ dim: 16, exactTokenVectorsMax: 0 });
    await index.createSegment(1, path.join(directory.path, 'sync.seg'));
    await Promise.all(
      Array.from({ length: 60 }, async (_, version) => {
        await index.append(1, clusters.record(version, [3]));
        await index.sync(1);
      }),
    );
    expect(index.segments()[0]).toMatchObject({ records: 60, tokenVectors: 180 });
    index.close();
  });
});

describe('codes whose build was cut short by `kill -9`', () => {
  it('are there as far as segments were done, and the others are built with the same codebook', async () => {
    using killed = temporaryDirectory();
    const records = 400;
    const child = spawnSync(process.execPath, [
      path.join(import.meta.dirname, 'killed-build-process.ts'),
      killed.path,
      String(records),
    ]);
    expect({ signal: child.signal, stderr: String(child.stderr) }).toEqual({ signal: 'SIGKILL', stderr: '' });
    const index = engine.createIndex({ dim: 32, exactTokenVectorsMax: 0 });
    const numbers = Array.from({ length: records }, (_, record) => record);
    for (let segmentId = 1; segmentId <= 4; segmentId++) {
      const file = path.join(killed.path, `${segmentId}.seg`);
      await index.openSegment(segmentId, file, { recordsReferenced: records, sealed: true });
      index.publish(segmentId, columns(segmentId, numbers), noLifespans);
    }
    // A build replaces the file.
    const fileOf = (segmentId: number) => statSync(path.join(killed.path, `${segmentId}.seg.codes`)).ino;
    const done = [fileOf(1), fileOf(2)];
    const due = index
      .segments()
      .filter(({ centroids, codesOutdated }) => centroids === 0 || codesOutdated)
      .map(({ segmentId }) => segmentId);
    // The third may have been written in the moment before.
    expect([[3, 4], [4]]).toContainEqual(due);
    for (const segmentId of due) expect((await index.buildCodes(segmentId)).fitted).toBe(false);
    expect(new Set(index.segments().map(({ codebook }) => codebook)).size).toBe(1);
    expect([fileOf(1), fileOf(2)]).toEqual(done);
    index.close();
  });
});

describe('storage', () => {
  it('a small segment takes little space', async () => {
    const index = engine.createIndex({ dim: 16, exactTokenVectorsMax: 0 });
    await index.createSegment(1, path.join(directory.path, 'small.seg'));
    expect(index.segments()[0]!.fileBytes).toBeLessThanOrEqual(512 * 1024);
    index.close();
  });

  it.runIf(process.platform === 'linux')('an active segment keeps no filter terms in memory', async () => {
    const ownKiB = () => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
    const index = engine.createIndex({ dim: 8, exactTokenVectorsMax: 0 });
    await index.createSegment(1, path.join(directory.path, 'terms.seg'));
    const [records, terms] = [400, 1_636];
    const bytes = new Uint8Array(terms * 16);
    const numbers = new Uint32Array(bytes.buffer);
    const record = new Clusters(seededRandom(6), 8, 5).record(1, [1], bytes);
    const before = ownKiB();
    for (let version = 0; version < records; version++) {
      for (let at = 0; at < terms; at++) numbers[at * 4] = version * terms + at;
      await index.append(1, record);
    }
    expect(index.segments()[0]!.termBytes).toBe(records * terms * 16);
    // The terms themselves are 10 MiB.
    expect(ownKiB() - before).toBeLessThan(5 * 1024);
    index.close();
  });

  /** A file system of 1 MiB needs the right to mount; without it there is no disk to fill. */
  const mountTiny = (target: string) =>
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'maxsimd-test', target]).status === 0;
  const mountable = (() => {
    using trial = temporaryDirectory();
    return mountTiny(trial.path) && spawnSync('umount', [trial.path]).status === 0;
  })();

  it.runIf(mountable)(
    'a full disk is `no_space` before anything is promised, and room made later is used',
    async () => {
      using mountPoint = temporaryDirectory();
      expect(mountTiny(mountPoint.path)).toBe(true);
      try {
        const clusters = new Clusters(seededRandom(4), 128, 5);
        const index = engine.createIndex({ dim: 128, exactTokenVectorsMax: 0 });
        const file = path.join(mountPoint.path, '1.seg');
        await index.createSegment(1, file);
        const record = clusters.record(1, [300]);
        let appended = 0;
        const full = async () => {
          for (; appended < 1_000; appended++) await index.append(1, record);
        };
        await expect(full()).rejects.toMatchObject({ code: 'no_space' });
        expect(appended).toBeGreaterThan(10);
        await index.sync(1);
        index.publish(
          1,
          columns(
            1,
            Array.from({ length: appended }, (_, n) => n),
          ),
          noLifespans,
        );
        const found = await index.search(clusters.search(1, { topK: 5 }));
        expect(found.versionIds).toHaveLength(5);
        await expect(index.createSegment(2, path.join(mountPoint.path, '2.seg'))).rejects.toMatchObject({
          code: 'no_space',
        });
        expect(existsSync(path.join(mountPoint.path, '2.seg'))).toBe(false);
        // A full disk does not keep a segment from being opened and searched.
        index.close();
        const again = engine.createIndex({ dim: 128, exactTokenVectorsMax: 0 });
        expect(
          await again.openSegment(1, file, { recordsReferenced: appended, sealed: false }),
        ).toMatchObject({
          state: 'active',
          records: appended,
        });
        expect(spawnSync('mount', ['-o', 'remount,size=8m', mountPoint.path]).status).toBe(0);
        await again.append(1, record);
        await again.seal(1);
        again.close();
      } finally {
        spawnSync('umount', ['-l', mountPoint.path]);
      }
    },
  );
});
