/** Settings stay few, and a test sets each of them and sees its effect. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { describeConfig } from '../../src/app/config.ts';

const root = path.resolve(import.meta.dirname, '../..');
const commandLineSettings = 4;
/** Tests that set variables without an effect: they look at the parser, or compare names with documents. */
const parserTests = new Set([
  'test/app/config.test.ts',
  'test/app/settings.test.ts',
  'test/release/deploy/files.test.ts',
]);
const tests = globSync('test/**/*.test.ts', { cwd: root })
  .filter((file) => !parserTests.has(file))
  .map((file) => ({ file, text: readFileSync(path.join(root, file), 'utf8') }));
const settings = describeConfig().map(({ name }) => name);

it('there are at most 40, with those of the command line', () => {
  expect(settings.length + commandLineSettings).toBeLessThanOrEqual(40);
});

it.each(settings)('%s is read by a test', (name) => {
  const readers = tests.filter(({ text }) => new RegExp(`\\b${name}\\b`).test(text)).map(({ file }) => file);
  expect(readers).not.toEqual([]);
});
