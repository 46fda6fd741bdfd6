import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LoopDelay } from '../../../src/encoder/server/loop-delay.ts';

it('tells of an event loop that is held up, and not of its own interval', async () => {
  const loop = new LoopDelay();
  expect(loop.p99Ms()).toBe(0);
  for (let i = 0; i < 5; i++) {
    const until = performance.now() + 60;
    while (performance.now() < until);
    await pause(10);
  }
  expect(loop.p99Ms()).toBeGreaterThan(40);
});
