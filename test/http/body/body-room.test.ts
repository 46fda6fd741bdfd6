import { describe, expect, it } from 'vitest';
import { BodyRoom } from '../../../src/http/body/body-room.ts';

function roomOf(waitMs = 60_000) {
  const room = new BodyRoom({ bytesMax: 10, tenantBytesMax: 6, waitMs });
  const entered: string[] = [];
  const signal = new AbortController().signal;
  /** `name`: the tenant's, and more. */
  const enter = async (name: string, bytes: number, until = signal): Promise<() => void> => {
    const leave = await room.enter({ tenantId: name.slice(0, 1), bytes }, until);
    entered.push(name);
    return leave;
  };
  return { enter, entered };
}

/** After everything that is due by now. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the room for large bodies', () => {
  it('is never exceeded, and goes to the tenant that holds least', async () => {
    const { enter, entered } = roomOf();
    const first = await enter('a1', 5);
    const others = ['a2', 'b1', 'b2', 'c1'].map((name) => enter(name, 5));
    await turn();
    expect(entered).toEqual(['a1', 'b1']);
    first();
    await turn();
    // Neither a nor c holds any: first come, first served.
    expect(entered).toEqual(['a1', 'b1', 'a2']);
    (await others[0]!)();
    await turn();
    // b holds some still.
    expect(entered).toEqual(['a1', 'b1', 'a2', 'c1']);
    (await others[1]!)();
    await Promise.all(others);
    expect(entered.at(-1)).toBe('b2');
  });

  it('is not one tenant’s alone', async () => {
    const { enter, entered } = roomOf();
    const first = await enter('a1', 3);
    const second = enter('a2', 4);
    await turn();
    expect(entered).toEqual(['a1']);
    await enter('b1', 5);
    first();
    await second;
    expect(entered).toEqual(['a1', 'b1', 'a2']);
  });

  it('is not waited for beyond the bound: 503', async () => {
    const { enter, entered } = roomOf(20);
    const first = await enter('a1', 6);
    await expect(enter('b1', 6)).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: expect.any(Number) as number,
    });
    // What was given up holds nothing.
    first();
    await enter('a2', 6);
    await enter('b2', 4);
    expect(entered).toEqual(['a1', 'a2', 'b2']);
  });

  it('lets the next one in when the one before it has gone', async () => {
    const { enter, entered } = roomOf();
    await enter('a1', 5);
    const gone = new AbortController();
    const waiting = enter('b1', 6, gone.signal);
    const behind = enter('c1', 5);
    gone.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await behind;
    expect(entered).toEqual(['a1', 'c1']);
    await expect(enter('d1', 1, gone.signal)).rejects.toThrow('gone');
  });
});
