/** Holds the code to the glossary: its words are in use. Every comment of code and documents is a sentence. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const textOf = (file: string): string => readFileSync(path.join(root, file), 'utf8');
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
  // Texts that are stored in tests have words of their own.
  .filter((file) => !/\/(texts|words\.test)\.ts$/.test(file));

/** Words of a text or an identifier, lower case, one space between: `codeLevels_x` is `code levels x`. */
function wordsOf(text: string): string {
  return ` ${text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .toLowerCase()} `;
}

const [, glossary = ''] = textOf('docs/architecture/overview.md').split('## Glossary\n');
const words = [...glossary.matchAll(/^\| (?!Word|---)(.+?) \| .+ \|$/gm)].map(([, word = '']) => word);
const code = tracked
  .filter((file) => /^(src|native)\//.test(file))
  .map((file) => wordsOf(`${file} ${textOf(file)}`));

it.each(words)('the glossary word "%s" is in use', (word) => {
  const forms = [word, `${word}s`, word.replace(/x$/, 'ces')].map(wordsOf);
  expect(code.some((text) => forms.some((form) => text.includes(form)))).toBe(true);
});

it('every comment is a sentence: none begins with "Of" or "What"', () => {
  const begun = tracked.filter((file) => /^ *(?:\/\*\*|\/\/\/?|\*) (?:Of|What)\b/m.test(textOf(file)));
  expect(begun).toEqual([]);
});
