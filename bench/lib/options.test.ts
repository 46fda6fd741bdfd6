/** Values that the options of benchmarks accept and refuse. */
import { describe, expect, it } from 'vitest';
import type { Setting } from './benchmark.ts';
import { device, integer, integers, names, positiveNumber } from './options.ts';

describe('an option of a benchmark', () => {
  it.each<[Setting<unknown>, string, unknown]>([
    [integer(1, ''), '50', 50],
    [integer(1, '', 0), '0', 0],
    [integers('', ''), '128,96', [128, 96]],
    [positiveNumber(1, ''), '0.5', 0.5],
    [names(['a', 'b', 'c'], ''), 'b,a', ['b', 'a']],
    [names(['a'], ''), '', []],
    [device('cpu'), 'cpu', { provider: 'cpu', index: 0 }],
    [device('cpu'), 'cuda:3', { provider: 'cuda', index: 3 }],
  ])('is read as what it is (%#)', ({ parse }, text, value) => {
    expect([parse(text)]).toMatchObject([value]);
  });

  it.each<[Setting<unknown>, string]>([
    [integer(1, ''), 'many'],
    [integer(1, ''), ''],
    [integer(1, ''), '1.5'],
    [integer(1, ''), '0'],
    [integers('', ''), '128,'],
    [positiveNumber(1, ''), '-1'],
    [positiveNumber(1, ''), 'fast'],
    [names(['a', 'b'], ''), 'a,d'],
    [device('cpu'), 'gpu'],
  ])('that cannot be read is an error (%#)', ({ parse }, text) => {
    expect(() => parse(text)).toThrow(/^It (takes|is) |^There is no d; there are a, b/);
  });
});
