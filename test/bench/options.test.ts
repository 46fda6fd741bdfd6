/** What the benchmarks' options refuse. */
import { describe, expect, it } from 'vitest';
import { device, integer, integers, names, positiveNumber } from '../../bench/options.ts';

describe('an option of a benchmark', () => {
  it('is read as what it is', () => {
    expect(integer('50', 'texts')).toBe(50);
    expect(integer('0', 'threads', 0)).toBe(0);
    expect(integers('128,96', 'dims')).toEqual([128, 96]);
    expect(positiveNumber('0.5', 'step-seconds')).toBe(0.5);
    expect(names('b,a', ['a', 'b', 'c'], 'parts')).toEqual(['b', 'a']);
    expect(names('', ['a'], 'parts')).toEqual([]);
    expect(device('cpu', 'device')).toEqual({ provider: 'cpu', device: 0 });
    expect(device('cuda:3', 'device')).toEqual({ provider: 'cuda', device: 3 });
  });

  it.each<[string, () => unknown]>([
    ['--texts', () => integer('many', 'texts')],
    ['--texts', () => integer('', 'texts')],
    ['--texts', () => integer('1.5', 'texts')],
    ['--texts', () => integer('0', 'texts')],
    ['--dims', () => integers('128,', 'dims')],
    ['--first-rate', () => positiveNumber('-1', 'first-rate')],
    ['--first-rate', () => positiveNumber('fast', 'first-rate')],
    ['--parts: no d; there are a, b', () => names('a,d', ['a', 'b'], 'parts')],
    ['--device', () => device('gpu', 'device')],
  ])('that cannot be read is an error that names it: %s', (message, read) => {
    expect(read).toThrow(message);
  });
});
