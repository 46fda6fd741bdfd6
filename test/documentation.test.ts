/** Holds the documents to the program: generated tables, links, and the files they name. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readmePath, tableNames, withTables } from '../docs/tables.ts';

const root = path.resolve(import.meta.dirname, '..');
const documents = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '');

describe('README', () => {
  const readme = readFileSync(readmePath, 'utf8');

  it('holds the generated tables as the program describes itself (`node docs/tables.ts` rewrites them)', () => {
    expect(withTables(readme)).toBe(readme);
    for (const name of tableNames) expect(readme).toContain(`<!-- table:${name} -->`);
  });

  it('names only npm scripts that exist', () => {
    const scripts = Object.keys(
      JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).scripts as object,
    );
    for (const [, name] of readme.matchAll(/npm run ([\w:-]+)/g)) expect(scripts).toContain(name);
  });
});

describe.each(documents)('%s', (file) => {
  it('links only to files that exist', () => {
    const text = readFileSync(path.join(root, file), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
      expect(existsSync(path.resolve(root, path.dirname(file), target)), `${file}: ${target}`).toBe(true);
    }
  });
});
