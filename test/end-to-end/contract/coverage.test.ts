/** Every sentence of the specification and every decision of ours is claimed by the title of a test. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { beforeAll, describe, expect, test } from 'vitest';

import { decisions, sentences } from './sentences.ts';

const root = path.resolve(import.meta.dirname, '..');

/** The first argument of every `test(...)` of the end-to-end suites. */
async function readTitles(): Promise<readonly string[]> {
  const names = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.test.ts'));
  const sources = await Promise.all(names.map((name) => readFile(path.join(root, name), 'utf8')));
  return sources.flatMap((source) =>
    [...source.matchAll(/^\s*test\(\s*(['"])(.*?)\1,/gm)].map((match) => match[2] ?? ''),
  );
}

describe('Coverage of the interface', () => {
  let titles: readonly string[] = [];

  beforeAll(async () => {
    titles = await readTitles();
  });

  for (const [section, quotes] of Object.entries(sentences)) {
    test(`every sentence of "${section}" has its test`, () => {
      expect(quotes.filter((quote) => !titles.some((title) => title.includes(quote)))).toEqual([]);
    });
  }

  test('every decision of ours has its test', () => {
    const claimed = titles.filter((title) => title.includes('decision:'));
    expect(decisions.filter((decision) => !claimed.some((title) => title.includes(decision)))).toEqual([]);
  });

  test('no quote is listed twice', () => {
    const all = [...Object.values(sentences).flat(), ...decisions];
    expect(all.filter((quote, position) => all.indexOf(quote) !== position)).toEqual([]);
  });
});
