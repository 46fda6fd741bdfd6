/** The log says whether the engine scores on a GPU. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { watchEngineDevice } from '../../src/app/engine-device.ts';
import type { EngineDevice, NativeEngine } from '../../src/index/engine/native.ts';
import type { Logger } from '../../src/observation/logging.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it('warns of a segment that is not there, and says once that the device failed', () => {
  let device: EngineDevice | undefined = {
    name: 'one',
    mostBytes: 10,
    bytes: 5,
    segments: 1,
    coming: 0,
    scored: 3,
    refusal: '',
    failure: '',
  };
  const engine = { device: () => device } as unknown as NativeEngine;
  const lines: unknown[] = [];
  const logger = {
    warn: (fields: unknown) => lines.push(fields),
    error: (fields: unknown) => lines.push(fields),
  } as unknown as Logger;
  const stop = watchEngineDevice(engine, logger);
  vi.advanceTimersByTime(30_000);
  expect(lines).toEqual([]);
  device = { ...device, refusal: '2.seg: no room' };
  vi.advanceTimersByTime(30_000);
  expect(lines).toEqual([{ refusal: '2.seg: no room' }]);
  device = { ...device, failure: 'an uncorrectable error' };
  vi.advanceTimersByTime(30_000);
  expect(lines).toEqual([{ refusal: '2.seg: no room' }, { failure: 'an uncorrectable error' }]);
  stop();
  device = { ...device, refusal: '3.seg: no room' };
  vi.advanceTimersByTime(30_000);
  expect(lines).toHaveLength(2);
});
