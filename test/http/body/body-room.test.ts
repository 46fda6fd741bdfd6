import { describe, expect, it } from 'vitest';
import { BodyRoom, type BodyPlace } from '../../../src/http/body/body-room.ts';
import { until } from '../../support/http/http-server.ts';

function roomOf(bytesMax: number, { waitMs = 60_000, patienceMs = 30_000 } = {}) {
  const room = new BodyRoom({ bytesMax, waitMs, patienceMs });
  const entered: string[] = [];
  const lost: string[] = [];
  /** `name`: the tenant's, and more. */
  const open = (name: string): BodyPlace =>
    room.open(name.slice(0, 1), (reason) => {
      expect(reason).toMatchObject({
        code: 'service_unavailable',
        retryAfterSeconds: expect.any(Number) as number,
      });
      lost.push(name);
    });
  /** A body that asks for so many bytes. */
  const body = (name: string, bytes: number): BodyPlace => {
    const place = open(name);
    const waiting = place.take(bytes);
    if (waiting === undefined) entered.push(name);
    else void waiting.then(() => entered.push(name));
    return place;
  };
  return { open, body, entered, lost };
}

/** After everything that is due by now. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the room for large bodies', () => {
  it('charges what has arrived: many that announce much and send little leave it free', () => {
    const { open, body, entered } = roomOf(100);
    for (const tenant of ['a', 'b', 'c', 'd']) {
      for (const n of [1, 2]) expect(open(`${tenant}${n}`).take(1)).toBeUndefined();
    }
    body('e1', 40);
    expect(entered).toEqual(['e1']);
  });

  it('is half for one tenant at most, and never all for many', async () => {
    const { open, body, entered } = roomOf(100);
    const held = ['a', 'b', 'c', 'd'].map((tenant) => {
      let bytes = 0;
      while (open(tenant).take(1) === undefined) bytes += 1;
      return bytes;
    });
    expect(held[0]).toBe(50);
    expect(held.reduce((sum, bytes) => sum + bytes)).toBeLessThan(100);
    body('e1', 1);
    await turn();
    expect(entered).toEqual(['e1']);
  });

  it('goes to the tenant that holds least, first come, first served', async () => {
    const { body, entered } = roomOf(20);
    const first = body('a1', 10);
    const others = ['a2', 'b1', 'c1'].map((name) => body(name, 8));
    await turn();
    expect(entered).toEqual(['a1']);
    first.leave();
    await turn();
    expect(entered).toEqual(['a1', 'a2']);
    others[0]!.leave();
    await turn();
    expect(entered).toEqual(['a1', 'a2', 'b1']);
    others[1]!.leave();
    await turn();
    expect(entered.at(-1)).toBe('c1');
  });

  it('is not waited for beyond the bound, and what is lost holds nothing', async () => {
    const { body, entered, lost } = roomOf(20, { waitMs: 20 });
    const first = body('a1', 10);
    body('b1', 6);
    await until(() => lost.length > 0);
    expect(lost).toEqual(['b1']);
    first.leave();
    body('c1', 10);
    expect(entered).toEqual(['a1', 'c1']);
  });

  it('lets the next one in when the one before it leaves unserved', async () => {
    const { body, entered } = roomOf(20);
    body('a1', 10);
    const waiting = body('b1', 6);
    body('c1', 7).leave();
    waiting.leave();
    body('d1', 5);
    await turn();
    expect(entered).toEqual(['a1', 'd1']);
  });

  it('is taken from the slowest of a tenant that holds more, if it still arrives', async () => {
    const { body, entered, lost } = roomOf(100, { patienceMs: 20 });
    const arrived = body('a1', 20);
    arrived.arrived();
    body('a2', 20);
    body('b1', 25);
    // It would have to leave free what it takes.
    body('c1', 20);
    await until(() => entered.includes('c1'));
    expect(entered).toEqual(['a1', 'a2', 'b1', 'c1']);
    expect(lost).toEqual(['a2']);
  });

  it('is never taken from a tenant that holds no more than the one that waits', async () => {
    const { body, entered, lost } = roomOf(20, { waitMs: 60, patienceMs: 20 });
    body('b1', 1);
    body('a1', 9);
    body('a2', 3);
    await until(() => lost.length > 0);
    expect([entered, lost]).toEqual([['b1', 'a1'], ['a2']]);
  });
});

it('of many bodies of a tenant that arrive a piece of each in turn, one after the other is whole', async () => {
  const room = new BodyRoom({ bytesMax: 60, bodyBytesMax: 10, waitMs: 60_000, patienceMs: 60_000 });
  const bodies = Array.from({ length: 12 }, () => room.open('tenant', () => undefined));
  const ended: number[] = [];
  const whole = bodies.map(async (body, place) => {
    for (let piece = 0; piece < 10; piece += 1) {
      await body.take(1);
      await Promise.resolve();
    }
    ended.push(place);
    body.arrived();
    body.leave();
  });
  await Promise.all(whole);
  expect(ended).toEqual(bodies.map((_, place) => place));
});
