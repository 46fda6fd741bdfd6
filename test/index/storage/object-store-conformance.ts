/**
 * The conformance suite of the object store on an S3 server. The suite of a server calls it with a function that starts
 * one. A proxy before the server makes the faults of networks and servers.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../deploy/local/free-port.ts';
import type { RunningServer } from '../../../deploy/local/server-process.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { openS3ObjectStore, type S3Options } from '../../../src/index/storage/s3-object-store.ts';
import { serversMs } from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { startFaultyHttp, type FaultyHttp } from '../../support/network/faulty-http.ts';

const unavailable = { code: 'service_unavailable', retryAfterSeconds: 1 };
const kib = 1024;
const mib = 1024 * kib;

export interface ObjectStoreServer extends RunningServer {
  readonly bucket: string;
  /** The AWS variables to use it. */
  readonly environment: Readonly<Record<string, string>>;
}

let server: ObjectStoreServer;
let proxy: FaultyHttp;
let store: ObjectStore;
let folder: string;

function open(options: S3Options = {}, port = proxy.port): ObjectStore {
  process.env['AWS_ENDPOINT_URL_S3'] = `http://127.0.0.1:${port}`;
  const opened = openS3ObjectStore(`s3://${server.bucket}/${randomUUID()}`, options);
  onTestFinished(() => opened.close());
  return opened;
}

const shaOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A file of random bytes. */
async function newFile(
  bytes: number,
): Promise<{ readonly file: string; readonly bytes: number; readonly sha256: string }> {
  const content = randomBytes(bytes);
  const file = path.join(folder, randomUUID());
  await writeFile(file, content);
  return { file, bytes, sha256: shaOf(content) };
}

export function describeObjectStore(name: string, start: () => Promise<ObjectStoreServer>): void {
  describe(`object store: ${name}`, () => {
    beforeAll(async () => {
      server = await start();
      Object.assign(process.env, server.environment);
      proxy = await startFaultyHttp(server.port);
    }, serversMs);
    afterAll(async () => {
      await proxy.close();
      await server.stop();
    });
    beforeEach(async () => {
      folder = await newDirectory();
      store = open();
    });
    afterEach(() => {
      proxy.faults = {};
      store.close();
    });

    describeObjects();
    describeFiles();
    describeFaults();
    describeTurns();
  });
}

function describeObjects(): void {
  describe('an object', () => {
    it.each([0, 1, 100 * kib, 8 * mib, 21 * mib + 3])(
      'of %i bytes comes back as it was put',
      async (bytes) => {
        const { file, sha256 } = await newFile(bytes);
        expect(await store.putFile('i/a.seg', file)).toEqual({ bytes, sha256 });
        const copy = path.join(folder, 'copy');
        await store.getFile('i/a.seg', copy, { bytes, sha256 });
        expect(shaOf(await readFile(copy))).toBe(sha256);
      },
    );

    it('is read in parts, up to its end', async () => {
      const { file } = await newFile(1000);
      const content = await readFile(file);
      await store.putFile('a', file);
      for (const [first, bytes] of [
        [0, 1000],
        [0, 1],
        [300, 200],
        [990, 20],
        [1000, 10],
        [5000, 10],
      ] as const)
        expect(await store.readPart('a', first, bytes)).toEqual(content.subarray(first, first + bytes));
      await expect(store.readPart('none', 0, 10)).rejects.toMatchObject({ code: 'ENOENT' });
    });

    it('that was never put, or was removed, is missing', async () => {
      const { file, ...expected } = await newFile(10);
      const get = () => store.getFile('gone', path.join(folder, 'copy'), expected);
      await expect(get()).rejects.toMatchObject({ code: 'ENOENT' });
      await store.putFile('gone', file);
      await store.remove('gone');
      await store.remove('gone');
      await expect(get()).rejects.toMatchObject({ code: 'ENOENT' });
      expect(await readdir(folder)).toHaveLength(1);
    });

    it('that differs from what the catalog says is asked for twice, and not kept', async () => {
      const { file, sha256 } = await newFile(1000);
      await store.putFile('a', file);
      const copy = path.join(folder, 'copy');
      for (const expected of [
        { bytes: 1000, sha256: shaOf(Buffer.from('another')) },
        { bytes: 999, sha256 },
      ]) {
        const before = proxy.requests;
        await expect(store.getFile('a', copy, expected)).rejects.toMatchObject({ code: 'corrupt' });
        expect(proxy.requests - before).toBe(2);
      }
      expect(await readdir(folder)).toHaveLength(1);
    });

    it('never replaces a local file', async () => {
      const { file, ...expected } = await newFile(10);
      await store.putFile('a', file);
      await expect(store.getFile('a', file, expected)).rejects.toMatchObject({ code: 'EEXIST' });
      expect(shaOf(await readFile(file))).toBe(expected.sha256);
    });

    it('whose folder has gone is not missing', async () => {
      const { file, ...expected } = await newFile(10);
      await store.putFile('a', file);
      await expect(store.getFile('a', path.join(folder, 'no', 'a'), expected)).rejects.not.toMatchObject({
        code: 'ENOENT',
      });
    });
  });
}

function describeFiles(): void {
  describe('a file', () => {
    it('that cannot be read is an error of this machine', async () => {
      await expect(store.putFile('a', path.join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
    });

    it.each([100 * kib, 9 * mib])('of %i bytes that is altered on its way is not taken', async (bytes) => {
      const { file } = await newFile(bytes);
      proxy.faults = {
        alter: (body) => {
          const altered = Buffer.from(body);
          const place = Math.floor(body.length / 2);
          altered[place] = altered[place]! ^ 1;
          return altered;
        },
      };
      await expect(store.putFile('a', file)).rejects.toMatchObject(unavailable);
    });
  });
}

function describeFaults(): void {
  describe('a store that fails', () => {
    it('with 500 is tried again, and then is away', async () => {
      const { file, ...expected } = await newFile(10);
      proxy.faults = { status: 500 };
      for (const work of [
        () => store.putFile('a', file),
        () => store.getFile('a', path.join(folder, 'copy'), expected),
        () => store.remove('a'),
      ]) {
        const before = proxy.requests;
        await expect(work()).rejects.toMatchObject(unavailable);
        expect(proxy.requests - before).toBe(4);
      }
      await expect(store.ping()).rejects.toMatchObject(unavailable);
      expect(await readdir(folder)).toHaveLength(1);
    });

    it.each(['cut', 'silence'] as const)(
      'in the middle of a body by %s leaves nothing, and the next try succeeds',
      async (ending) => {
        const patient = open({ idleMsMax: 800 });
        const { file, ...expected } = await newFile(2 * mib);
        await patient.putFile('a', file);
        proxy.faults = { passBytes: mib, ending };
        const copy = path.join(folder, 'copy');
        await expect(patient.getFile('a', copy, expected)).rejects.toMatchObject(unavailable);
        await expect(patient.readPart('a', 1, 2 * mib - 1)).rejects.toMatchObject(unavailable);
        expect(await readdir(folder)).toHaveLength(1);
        proxy.faults = {};
        await patient.getFile('a', copy, expected);
        expect(shaOf(await readFile(copy))).toBe(expected.sha256);
        const part = await patient.readPart('a', 1, 2 * mib - 1);
        expect(part.equals((await readFile(file)).subarray(1))).toBe(true);
      },
    );

    it('by saying nothing is away after a while', async () => {
      const patient = open({ idleMsMax: 100 });
      const { file, ...expected } = await newFile(10);
      proxy.faults = { delayMs: 60_000 };
      await expect(patient.putFile('a', file)).rejects.toMatchObject(unavailable);
      await expect(patient.getFile('a', path.join(folder, 'copy'), expected)).rejects.toMatchObject(
        unavailable,
      );
    });

    it('by being killed is away, and keeps what it took', async () => {
      const { file, ...expected } = await newFile(9 * mib);
      await store.putFile('a', file);
      await server.stop('SIGKILL');
      const copy = path.join(folder, 'copy');
      await expect(store.getFile('a', copy, expected)).rejects.toMatchObject(unavailable);
      await server.start();
      await store.getFile('a', copy, expected);
      expect(shaOf(await readFile(copy))).toBe(expected.sha256);
    });

    it('by not being there is away', async () => {
      const nobody = open({}, await freePort());
      const { file } = await newFile(10);
      await expect(nobody.putFile('a', file)).rejects.toMatchObject(unavailable);
      await expect(nobody.ping()).rejects.toMatchObject(unavailable);
    });
  });
}

function describeTurns(): void {
  it('a store is asked whether it takes and gives objects, at most every few seconds', async () => {
    const before = proxy.requests;
    await Promise.all([store.ping(), store.ping()]);
    await store.ping();
    expect(proxy.requests - before).toBe(2);
    const altered = open();
    proxy.faults = { passBytes: 3, ending: 'cut' };
    await expect(altered.ping()).rejects.toMatchObject(unavailable);
  });

  it('files beyond those that are under way wait their turn, however long that takes', async () => {
    const narrow = open({ filesAtOnce: 3, connectMsMax: 1_000, idleMsMax: 1_200 });
    const { file, ...expected } = await newFile(10);
    await narrow.putFile('a', file);
    proxy.faults = { delayMs: 150 };
    proxy.mostAtOnce = 0;
    await Promise.all(
      Array.from({ length: 30 }, (_value, place) =>
        narrow.getFile('a', path.join(folder, `copy ${place}`), expected),
      ),
    );
    expect(proxy.mostAtOnce).toBe(3);
  });
}
