/** Files made to mislead the addon: refused, where they would end the process. All readers and fields: native/test/store/crafted_test.cpp. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { Clusters, temporaryDirectory } from './sample.ts';

const directory = temporaryDirectory();
const engine = createEngine({ threads: 1, kernel: 'auto' });
afterAll(() => {
  engine.close();
  directory[Symbol.dispose]();
});

const reversedPolynomial = 0x82f63b78;

function crc32c(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ reversedPolynomial : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** Sets the checksum of the 64-byte header at `at`. */
function mendHeader(file: Buffer, at: number): void {
  file.writeUInt32LE(crc32c(file.subarray(at + 16, at + 64)), at + 12);
}

async function sealedSegment(name: string): Promise<string> {
  const file = path.join(directory.path, name);
  const clusters = new Clusters(seededRandom(1), 8, 5);
  const index = engine.createIndex({ dim: 8, exactTokenVectorsMax: 0 });
  await index.createSegment(1, file);
  for (let version = 0; version < 4; version++) await index.append(1, clusters.record(version, [2]));
  await index.seal(1);
  await index.buildCodes(1);
  index.close();
  return file;
}

it('a footer that starts before its file is `corrupt`', async () => {
  const name = await sealedSegment('footer.seg');
  const file = readFileSync(name);
  const trailer = file.length - 64;
  // It is as long as the file: its place wraps.
  file.writeBigUInt64LE(BigInt.asUintN(64, -64n), trailer + 16);
  file.writeUInt32LE(file.length / 32, trailer + 32);
  file.writeUInt32LE(0, trailer + 36);
  mendHeader(file, trailer);
  writeFileSync(name, file);
  const index = engine.createIndex({ dim: 8, exactTokenVectorsMax: 0 });
  await expect(index.openSegment(1, name, { recordsReferenced: 0, sealed: true })).rejects.toMatchObject({
    code: 'corrupt',
  });
  index.close();
  const look = { recordsReferenced: 0, firstRecord: 0, verifyBytesMax: Number.MAX_SAFE_INTEGER };
  await expect(engine.inspectSegment(name, look)).rejects.toMatchObject({ code: 'corrupt' });
});

it('codes of token vectors of an impossible size are damaged', async () => {
  const name = `${await sealedSegment('codes.seg')}.codes`;
  const file = readFileSync(name);
  file.writeUInt32LE(0xffff_ffff, 24);
  mendHeader(file, 0);
  writeFileSync(name, file);
  expect((await engine.inspectCodes(name, true)).damage).not.toBe('');
});
