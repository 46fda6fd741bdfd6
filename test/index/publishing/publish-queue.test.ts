import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishQueue } from '../../../src/index/publishing/publish-queue.ts';

describe('publishing', () => {
  it('makes commits visible in the order of their generations, whatever the order they come in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 1000 }),
        fc
          .integer({ min: 1, max: 12 })
          .chain((count) => fc.shuffledSubarray([...Array(count).keys()], { minLength: count })),
        async (start, arrival) => {
          const applied: number[] = [];
          const queue = new PublishQueue(start, (commit) => void applied.push(commit.generation));
          const visible: number[] = [];
          await Promise.all(
            arrival.map(async (place) => {
              const generation = start + 1 + place;
              await queue.submit({ generation, born: [], died: [] });
              visible.push(generation);
              expect(queue.published).toBeGreaterThanOrEqual(generation);
            }),
          );
          expect(applied).toEqual(arrival.map((_place, index) => start + 1 + index));
          expect(visible).toHaveLength(arrival.length);
        },
      ),
    );
  });

  it('does nothing for a commit that is visible already', async () => {
    const queue = new PublishQueue(5, () => expect.unreachable());
    await queue.submit({ generation: 5, born: [], died: [] });
    await queue.submit({ generation: 3, born: [], died: [] });
  });

  it('applies a commit once when it comes by two ways', async () => {
    const applied: number[] = [];
    const queue = new PublishQueue(0, (commit) => void applied.push(commit.generation));
    const both = [2, 2, 1].map((generation) => queue.submit({ generation, born: [], died: [] }));
    await Promise.all(both);
    expect(applied).toEqual([1, 2]);
  });

  it('rejects all who wait behind a commit that never comes, when it gives up', async () => {
    const queue = new PublishQueue(0, () => undefined);
    const waiting = queue.submit({ generation: 2, born: [], died: [] });
    queue.fail(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await expect(queue.submit({ generation: 3, born: [], died: [] })).rejects.toThrow('gone');
    await queue.submit({ generation: 1, born: [], died: [] });
    expect(queue.published).toBe(1);
  });

  it('ends at a commit that cannot be applied: all who wait are rejected, and nothing is applied after it', async () => {
    const applied: number[] = [];
    const queue = new PublishQueue(0, ({ generation }) => {
      if (generation === 2) throw new Error('cannot be applied');
      applied.push(generation);
    });
    const submit = (generation: number) => queue.submit({ generation, born: [], died: [] });
    const outcomes = await Promise.allSettled([submit(3), submit(2), submit(1), submit(2), submit(4)]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    expect([applied, queue.published]).toEqual([[1], 1]);
  });
});
