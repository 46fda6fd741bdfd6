import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { BodyRoom } from '../../../src/http/body/body-room.ts';
import { gather, smallBodyBytes, type GatherOptions } from '../../../src/http/body/gather.ts';
import { SmallPieces } from '../../../src/http/body/small-pieces.ts';

const errors = {
  tooLarge: () => new Error('too large'),
  late: () => new Error('late'),
  broken: () => new Error('broken'),
};

function gathering(options: Partial<GatherOptions> = {}) {
  const room = new BodyRoom({ bytesMax: 1 << 30, waitMs: 60_000, patienceMs: 60_000 });
  const stream = new PassThrough({ highWaterMark: 1 << 20 });
  const gathered = gather(stream, {
    bytesMax: 8 << 20,
    timeoutMs: 60_000,
    held: stream,
    openPlace: (lose) => room.open('tenant', lose),
    smallPieces: new SmallPieces(),
    errors,
    ...options,
  });
  return { stream, gathered };
}

/** A piece as Node's parser brings them: a buffer of its own. */
const piece = (bytes: number, value: number): Buffer => Buffer.alloc(bytes, value);

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes of the heap and of buffers, after a full collection. */
function memory(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

describe('a body', () => {
  it.each([
    ['one piece', [70_000]],
    ['many pieces', [1, 65_535, 1, 65_536, 200_000, 3]],
  ])('of %s comes out as it went in', async (_, lengths) => {
    const { stream, gathered } = gathering();
    const pieces = lengths.map((length, n) => piece(length, n + 1));
    for (const each of pieces) stream.write(each);
    stream.end();
    const { bytes, leave } = await gathered;
    expect(bytes.equals(Buffer.concat(pieces))).toBe(true);
    leave();
  });

  it('takes memory for its bytes, not for its pieces', async () => {
    const { stream, gathered } = gathering({ smallPieces: unhurried });
    const pieces = 500_000;
    const before = memory();
    for (let n = 0; n < pieces; n += 1) {
      stream.write(piece(1, 32));
      // They are read meanwhile, as they are from a connection.
      if (n % 10_000 === 0) await new Promise(setImmediate);
    }
    await new Promise(setImmediate);
    // Kept one by one they take 150 MB and more.
    expect(memory() - before).toBeLessThan(20 * pieces);
    stream.end();
    expect((await gathered).bytes.length).toBe(pieces);
  });

  it('takes room step by step, as its bytes arrive', async () => {
    const taken: number[] = [];
    const { stream, gathered } = gathering({
      openPlace: () => ({
        take: (bytes) => void taken.push(bytes),
        arrived: () => undefined,
        leave: () => undefined,
      }),
    });
    stream.write(piece(smallBodyBytes, 1));
    await new Promise(setImmediate);
    expect(taken).toEqual([]);
    stream.write(piece(1, 1));
    stream.write(piece(300_000, 1));
    stream.end();
    const { bytes } = await gathered;
    const held = taken.reduce((sum, each) => sum + each);
    expect(held - bytes.length).toBeGreaterThanOrEqual(0);
    expect(held - bytes.length).toBeLessThan(64 << 10);
  });

  it('is not read while it waits for room, and is read again if it is given up', async () => {
    const ready = Promise.withResolvers<void>();
    let lose: (reason: Error) => void = () => undefined;
    const { stream, gathered } = gathering({
      openPlace: (given) => {
        lose = given;
        return { take: () => ready.promise, arrived: () => undefined, leave: () => undefined };
      },
    });
    stream.write(piece(smallBodyBytes + 1, 1));
    await expect.poll(() => stream.isPaused()).toBe(true);
    stream.resume();
    await expect.poll(() => stream.isPaused()).toBe(true);
    lose(new Error('lost'));
    await expect(gathered).rejects.toThrow('lost');
    expect(stream.isPaused()).toBe(false);
  });

  it.each<[string, (stream: PassThrough) => unknown]>([
    ['too large', (stream) => stream.write(piece((8 << 20) + 1, 1))],
    ['broken', (stream) => stream.destroy()],
    ['broken', (stream) => stream.destroy(new Error('cut'))],
    ['late', () => undefined],
  ])('that is %s gives its room back', async (what, happen) => {
    let left = 0;
    const { stream, gathered } = gathering({
      timeoutMs: what === 'late' ? 50 : 60_000,
      openPlace: () => ({
        take: () => undefined,
        arrived: () => undefined,
        leave: () => void (left += 1),
      }),
    });
    stream.write(piece(smallBodyBytes + 1, 1));
    await new Promise(setImmediate);
    happen(stream);
    await expect(gathered).rejects.toThrow(what);
    expect(left).toBe(1);
  });
});

const unhurried = { ofBody: () => ({ wait: () => undefined }) } as unknown as SmallPieces;

describe('small pieces', () => {
  it('are waited for, so that all bodies together take a small share of the time', async () => {
    const pieces = new SmallPieces();
    const startedAt = performance.now();
    const bodies = [1, 2, 3].map(async () => {
      const body = pieces.ofBody();
      const wait = Array.from({ length: 10_000 }, () => body.wait(1)).find((each) => each !== undefined);
      await wait;
    });
    await bodies[0];
    const first = performance.now() - startedAt;
    await Promise.all(bodies);
    // A hundredth of a millisecond each, one body behind the other.
    expect(first).toBeGreaterThan(90);
    expect(performance.now() - startedAt).toBeGreaterThan(280);
  });

  it('are free where they are few, or of ordinary size', () => {
    const few = new SmallPieces().ofBody();
    expect(Array.from({ length: 200 }, () => few.wait(1))).toEqual(Array(200).fill(undefined));
    const ordinary = new SmallPieces().ofBody();
    expect(Array.from({ length: 5_000 }, () => ordinary.wait(1_024))).toEqual(Array(5_000).fill(undefined));
  });

  it('hold the connection, not the piece that came', async () => {
    const { stream, gathered } = gathering();
    for (let n = 0; n < 3_000; n += 1) stream.write(piece(1, 32));
    await expect.poll(() => stream.isPaused()).toBe(true);
    stream.end();
    expect((await gathered).bytes.length).toBe(3_000);
  });
});

it('a body whose end comes while it waits for room is whole once there is room', async () => {
  const entering = Promise.withResolvers<void>();
  const { stream, gathered } = gathering({
    openPlace: () => ({ take: () => entering.promise, arrived: () => undefined, leave: () => undefined }),
  });
  const closed = new Promise((resolve) => stream.once('close', resolve));
  stream.end(piece(70_000, 1));
  stream.on('end', () => stream.destroy()).resume();
  await closed;
  entering.resolve();
  expect((await gathered).bytes).toHaveLength(70_000);
});
