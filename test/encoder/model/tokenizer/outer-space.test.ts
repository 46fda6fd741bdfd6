/** White space at the ends of texts, as Python's `str.strip()` removes it. */
import { expect, it } from 'vitest';
import { withoutOuterSpace } from '../../../../src/encoder/model/tokenizer/outer-space.ts';

/** `[c for c in range(0x110000) if chr(c).isspace()]` of Python 3.11. */
const spaces = [
  [0x9, 0xa, 0xb, 0xc, 0xd, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680],
  [0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a],
  [0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
].flat();

it('every code point, at either end and alone', () => {
  const stripped = (at: (character: string) => string, left: string): number[] => {
    const codes = Array.from({ length: 0x110000 }, (_, code) => code);
    return codes.filter((code) => withoutOuterSpace(at(String.fromCodePoint(code))) === left);
  };
  expect(stripped((character) => `${character}a b`, 'a b')).toEqual(spaces);
  expect(stripped((character) => `a b${character}`, 'a b')).toEqual(spaces);
  expect(stripped((character) => character, '')).toEqual(spaces);
});

it('runs of white space inside a text stay, and take no time to pass over', () => {
  const inside = `a${' \t'.repeat(500_000)}b`;
  const before = process.threadCpuUsage();
  expect(withoutOuterSpace(` \n${inside}\u00a0 `)).toBe(inside);
  expect(process.threadCpuUsage(before).user).toBeLessThan(1e6);
});
