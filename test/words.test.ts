/** Holds code and documents to the glossary: its words are in use, the words that it replaces are not. */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const glossary = 'docs/architecture/overview.md';
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(
    (file) =>
      /^(src|native|bench|test|proto|docs)\/.*\.(ts|mjs|h|hpp|c|cc|cpp|proto|md|py)$/.test(file) ||
      file === 'README.md',
  )
  // Decisions keep the words of their day, and texts that are stored in tests have their own.
  .filter((file) => !/\/(texts|words\.test)\.ts$/.test(file) && file !== glossary);

/** Words of a text or an identifier, lower case, one space between: `codeLevels_x` is `code levels x`. */
function wordsOf(text: string): string {
  return ` ${text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .toLowerCase()} `;
}

/** Rows of the table under a heading. */
function rowsUnder(heading: string): readonly (readonly [string, string])[] {
  const [, section = ''] = readFileSync(path.join(root, glossary), 'utf8').split(`## ${heading}\n`);
  const [table = ''] = section.split('\n## ');
  return [...table.matchAll(/^\| (?!Word|Instead|---)(.+?) \| (.+) \|$/gm)].map(
    ([, first = '', second = '']) => [first, second],
  );
}

/** What outsiders read first. */
const firstRead = [
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('examples/**/*.{md,ts,py,sh}', { cwd: root }),
];

const texts = new Map(
  [...tracked, ...firstRead].map((file) => [
    file,
    wordsOf(`${file} ${readFileSync(path.join(root, file), 'utf8')}`),
  ]),
);

describe('words of the glossary', () => {
  const code = [...texts].filter(([file]) => /^(src|native)\//.test(file)).map(([, text]) => text);
  it.each(rowsUnder('Glossary').map(([word]) => word))('%s is in use', (word) => {
    const forms = [word, `${word}s`, word.replace(/x$/, 'ces')].map(wordsOf);
    expect(code.some((text) => forms.some((form) => text.includes(form)))).toBe(true);
  });
});

describe('words that the glossary replaces', () => {
  const replaced = rowsUnder('Words that are not used').flatMap(([words]) => words.split(', '));
  it.each(replaced)('%s is not used', (word) => {
    const users = [...texts].filter(([, text]) => text.includes(wordsOf(word))).map(([file]) => file);
    expect(users).toEqual([]);
  });
});

it('every comment is a sentence: none begins with "Of"', () => {
  const begun = tracked.filter((file) =>
    /^ *(?:\/\*\*|\/\/\/?|\*) Of\b/m.test(readFileSync(path.join(root, file), 'utf8')),
  );
  expect(begun).toEqual([]);
});
