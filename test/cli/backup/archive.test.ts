/** Archives that no backup wrote as they are: each is refused with its reason, before anything is touched. */
import { readFile, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  archiveVersion,
  checksumsName,
  decodeHeader,
  encodeHeader,
  manifestName,
} from '../../../src/cli/backup/archive-format.ts';
import { readArchive, type ArchiveContents } from '../../../src/cli/backup/archive-reader.ts';
import { rounds } from '../../rounds.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { announceRandom } from '../../support/running/random.ts';
import { archiveOf, entriesOf, type ArchivedFile } from './archives.ts';

const golden = path.resolve(import.meta.dirname, `../../fixtures/backup/format-${archiveVersion}.tar`);
let whole: Buffer;
let folder: string;
beforeAll(async () => {
  whole = await readFile(golden);
  folder = await newDirectory();
});

const read = async (archive: Buffer): Promise<ArchiveContents> => {
  const file = path.join(folder, 'archive');
  await writeFile(file, archive);
  return readArchive(file, { onBytes: () => undefined });
};

const refusal = (message: RegExp) => ({ code: 'archive_refused', message: expect.stringMatching(message) });

describe('an archive', () => {
  it('is read whole, and by tar', async () => {
    const { manifest, names, bytes } = await read(whole);
    expect(manifest).toMatchObject({ format_version: archiveVersion, key_pepper: true });
    expect(bytes).toBe(whole.length);
    const listed = execFileSync('tar', ['tf', golden], { encoding: 'utf8' }).trim().split('\n');
    expect(listed).toEqual([manifestName, ...names, checksumsName]);
    expect(archiveOf(entriesOf(whole)).length).toBe(whole.length);
    await expect(read(archiveOf(entriesOf(whole)))).resolves.toMatchObject({ bytes });
  });

  it('of files larger than 8 GiB has their sizes', () => {
    for (const bytes of [0, 2 ** 33 - 1, 2 ** 33, 2 ** 45]) {
      const header = { name: 'segments/a/1.seg', bytes, modified: new Date(1_700_000_000_000) };
      expect(decodeHeader(encodeHeader(header))).toEqual(header);
    }
  });

  it('with any bit flipped is refused', async () => {
    const random = announceRandom('flipped bits of an archive');
    for (let round = 0; round < rounds({ short: 120, nightly: 5_000 }); round += 1) {
      const place = random.integer(0, whole.length - 1);
      const bit = 1 << random.integer(0, 7);
      const damaged = Buffer.from(whole);
      damaged[place]! ^= bit;
      const what = `byte ${place} of ${whole.length}, bit ${bit}`;
      await expect(read(damaged), what).rejects.toMatchObject({ code: 'archive_refused' });
    }
  });

  it('that is cut anywhere is refused', async () => {
    const random = announceRandom('cut archives');
    const places = [0, 1, 511, 512, 513, whole.length - 1024, whole.length - 512, whole.length - 1];
    for (let round = 0; round < rounds({ short: 25, nightly: 2_000 }); round += 1) {
      places.push(random.integer(0, whole.length - 1));
    }
    for (const place of places) {
      const message = place < 200 ? /is no backup|is cut off|damaged/ : /is damaged: it is cut off at byte/;
      await expect(read(whole.subarray(0, place)), `cut at ${place}`).rejects.toMatchObject(
        place < 512 ? { code: 'archive_refused' } : refusal(message),
      );
    }
  });

  it.each([
    ['nothing', Buffer.alloc(0), /is no backup of maxsimd/],
    ['zeros', Buffer.alloc(4096), /is no backup of maxsimd/],
    ['a text', Buffer.from('a text\n'.repeat(1000)), /is no backup of maxsimd/],
    [
      'a foreign tar',
      archiveOf([{ name: 'etc/passwd', content: Buffer.from('root') }]),
      /is no backup of maxsimd/,
    ],
    [
      'another program in its manifest',
      archiveOf([{ name: manifestName, content: Buffer.from('{"format":"other"}') }]),
      /is no backup of maxsimd/,
    ],
  ])('that is %s is refused', async (_what, archive, message) => {
    await expect(read(archive)).rejects.toMatchObject(refusal(message));
  });

  it('of a newer format is refused by its number', async () => {
    const [manifest, ...files] = entriesOf(whole);
    const known = JSON.parse(manifest!.content.toString()) as object;
    const newer = { ...known, format_version: archiveVersion + 1, maxsimd: '9.0.0', added: true };
    const archive = archiveOf([{ ...manifest!, content: Buffer.from(JSON.stringify(newer)) }, ...files]);
    await expect(read(archive)).rejects.toMatchObject(
      refusal(/has archive format 3, this program reads up to 2: maxsimd 9\.0\.0 wrote it/),
    );
  });

  it.each([
    '../outside',
    '/etc/cron.d/x',
    'segments/../../x',
    'segments/a/../../x',
    'segments/a/b/c',
    'models/x',
    '',
  ])('with the name %j is refused', async (name) => {
    const [manifest, catalog, ...files] = entriesOf(whole);
    const archive = archiveOf([manifest!, catalog!, { name, content: Buffer.from('x') }, ...files]);
    await expect(read(archive)).rejects.toMatchObject(refusal(/which belongs in no backup|damaged header/));
  });

  it.each<[string, (files: ArchivedFile[]) => readonly ArchivedFile[], RegExp]>([
    ['a file twice', (files) => [...files.slice(0, 3), ...files.slice(2)], /twice/],
    ['a file less', (files) => files.filter((_file, place) => place !== 5), /does not list/],
    ['its last file less', (files) => files.toSpliced(-2, 1), /lists files that it does not hold/],
    ['no catalog', ([manifest, , ...files]) => [manifest!, ...files], /does not list/],
    [
      'a file changed',
      (files) => files.with(2, { ...files[2]!, content: Buffer.alloc(files[2]!.content.length) }),
      /another checksum/,
    ],
  ])('with %s is refused', async (_what, change, message) => {
    await expect(read(archiveOf(change([...entriesOf(whole)])))).rejects.toMatchObject(refusal(message));
  });

  it('that goes on after its end is refused', async () => {
    await expect(read(Buffer.concat([whole, Buffer.alloc(1)]))).rejects.toMatchObject(
      refusal(/goes on after its end/),
    );
  });
});
