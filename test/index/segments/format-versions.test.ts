/**
 * Segment files of a format that this program does not know are refused by name, and nothing is done to them;
 * derived files are built again.
 */
import { open, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { documentAt, openStage } from '../../support/stages/index-stage.ts';
import { useHost } from '../../support/stages/use-host.ts';

const host = useHost();

/** The place of the version in the file header, and in the trailer, from its end. */
const versionPlaces = { segment: 8, footer: -56 } as const;

describe('a segment file', () => {
  it.each([
    ['segment', 0],
    ['segment', 99],
    ['footer', 2],
    ['footer', 99],
  ] as const)('with %s format %i is refused with a clear message', async (part, version) => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 2 });
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().settled();
    const [blob] = await stage.blobs.list(`${stage.indexId}/`);
    const name = await stage.blobs.open(blob!.name);
    const write = async (value: number): Promise<number> => {
      await using file = await open(name, 'r+');
      const { size } = await file.stat();
      const at = versionPlaces[part] < 0 ? size + versionPlaces[part] : versionPlaces[part];
      const { buffer } = await file.read(Buffer.alloc(4), 0, 4, at);
      const before = buffer.readUInt32LE();
      await file.write(Buffer.from(Uint32Array.of(value).buffer), 0, 4, at);
      return before;
    };
    let known = 0;
    const refused = await stage
      .reopen(async () => {
        known = await write(version);
      })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: 'internal_error',
      message: 'the index was written by another version of maxsimd',
      cause: { code: 'unsupported_version', message: `${name}: ${part} format ${version} is not supported` },
    });
    // It is no damage: the right release opens the index again.
    expect(stage.corrupt).toEqual([]);
    const options = { recordsReferenced: 0, firstRecord: 0, verifyBytesMax: 0 };
    await expect(stage.engine.inspectSegment(name, options)).rejects.toMatchObject({
      code: 'unsupported_version',
    });
    const kept = await readFile(name);
    expect(kept).toHaveLength(blob!.bytes);
    expect(await write(known)).toBe(version);
    await stage.reopen();
    expect(await stage.search()).toHaveLength(2);
  });
});

describe.each(['codes', 'postings'] as const)('a file of %s', (kind) => {
  const settings = { segmentTokenVectorsMax: 2, codesTokenVectorsMin: 1 };
  const inspect = { codes: 'inspectCodes', postings: 'inspectPostings' } as const;

  it.each([
    ['another format', 8, new RegExp(`${kind} format \\d+ is not supported`)],
    ['a damaged header', 20, /damaged header/],
    ['a damaged directory', 100, /^damaged directory$/],
  ])('with %s is reported, ignored and built again', async (_what, place, message) => {
    await using stage = await openStage(host, settings);
    await stage.upsert([documentAt('a', 0, { is: 'a' }), documentAt('b', 1)]);
    await stage.index().settled();
    const statistics = stage.index().statistics();
    const files = await stage.blobs.list(`${stage.indexId}/`);
    const name = await stage.blobs.open(files.find((file) => file.name.endsWith(kind))!.name);
    const verdict = () =>
      stage.engine[inspect[kind]](name, true).then(
        ({ damage }) => damage,
        (error: Error) => error.message,
      );
    expect(await verdict()).toBe('');
    await stage.reopen(async () => {
      await using file = await open(name, 'r+');
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, place);
      await file.write(Uint8Array.of(buffer[0]! ^ 0x55), 0, 1, place);
      expect(await verdict()).toMatch(message);
    });
    expect(await stage.search()).toHaveLength(2);
    expect(await stage.search({ is: 'a' })).toHaveLength(1);
    await stage.index().settled();
    expect(await verdict()).toBe('');
    expect(stage.index().statistics()).toEqual(statistics);
    expect(await stage.blobs.list(`${stage.indexId}/`)).toEqual(files);
    expect([stage.errors, stage.corrupt]).toEqual([[], []]);
  });
});
