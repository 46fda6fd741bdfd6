/** Compares the documents with the program: generated tables, links and anchors, commands, sizes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { program } from '../bench/program.ts';
import { tableNames, withTables } from '../docs/tables.ts';
import { Components } from '../src/http/schemas/ranking.ts';

const root = path.resolve(import.meta.dirname, '..');
const documents = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(path.join(root, file)));
const textOf = (file: string): string => readFileSync(path.join(root, file), 'utf8');

const benchmarkLines = /npm run bench -- ([a-z][\w-]*)[^`\n]*/g;
/** The help text of each benchmark. */
const helps = new Map(program.commands.map((command) => [command.name(), command.helpInformation()]));

/** Options by command, as the command line completes them. */
const optionsOf = new Map(
  [
    ...spawnSync(process.execPath, ['src/cli/main.ts', 'completion', 'bash'], {
      cwd: root,
      encoding: 'utf8',
    }).stdout.matchAll(/^ {4}'([a-z][^']*)'\) words='([^']*)'/gm),
  ].map(([, command = '', words = '']) => [command, words.split(' ')] as const),
);

/** Commands of the command line that a text names and that do not exist, and options of theirs. */
function unknownCommandsIn(text: string): readonly string[] {
  const lines = text.matchAll(/(?:npm run maxsimd -- |npx maxsimd |`maxsimd |^maxsimd )([a-z][^`\n]*)/gm);
  return [...lines].flatMap(([, line = '']) => {
    const [group = '', word = ''] = line.trim().split(/\s+/);
    const options = optionsOf.get(`${group} ${word}`) ?? optionsOf.get(group);
    if (options === undefined) return [group];
    return [...line.matchAll(/--[a-z][\w-]*/g)]
      .map(([option]) => option)
      .filter((option) => !options.includes(option));
  });
}

/** The anchors that a renderer makes of the headings. */
function anchorsOf(file: string): readonly string[] {
  return [...textOf(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe.each(documents)('%s', (file) => {
  it('links only to files and headings that exist', () => {
    for (const [, target = '', anchor] of textOf(file).matchAll(
      /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g,
    )) {
      const linked = target === '' ? file : path.join(path.dirname(file), target);
      expect(existsSync(path.join(root, linked)), `${file}: ${target}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(linked), `${file}: ${target}#${anchor}`).toContain(anchor);
    }
  });

  it('holds the generated tables as the program describes itself (`node docs/tables.ts` rewrites them)', () => {
    expect(withTables(textOf(file))).toBe(textOf(file));
  });

  it('names only npm scripts that exist', () => {
    const scripts = Object.keys(JSON.parse(textOf('package.json')).scripts as object);
    for (const [, name] of textOf(file).matchAll(/npm run ([\w:-]+)/g)) expect(scripts).toContain(name);
  });

  it('names only commands of the command line and options of theirs that exist', () => {
    expect(unknownCommandsIn(textOf(file))).toEqual([]);
  });

  it('names only benchmarks and options of theirs that exist', () => {
    for (const [command, name = ''] of textOf(file).matchAll(benchmarkLines)) {
      const help = helps.get(name);
      expect(help, `${file}: ${name}`).toContain(`Usage: npm run bench -- ${name}`);
      for (const [option] of command.matchAll(/--[a-z][\w-]*/g))
        expect(help, `${file}: ${command}`).toContain(`  ${option} `);
    }
  });
});

it('a command or an option that does not exist would be found', () => {
  const text =
    'npm run maxsimd -- backup a.tar --with-pepper\nmaxsimd serv\n`maxsimd tenant create --name x`\n';
  expect(unknownCommandsIn(text)).toEqual(['--with-pepper', 'serv']);
});

it('the reference has every field of the components of a result', () => {
  const reference = textOf('docs/reference/api.md');
  const missing = Object.keys(Components.shape).filter((field) => !reference.includes(`\`${field}\``));
  expect(missing).toEqual([]);
});

it('every generated table stands in one document', () => {
  for (const name of tableNames) {
    const marker = new RegExp(`^<!-- table:${name} -->$`, 'm');
    expect(documents.filter((file) => marker.test(textOf(file)))).toHaveLength(1);
  }
});

it('every guide, reference and architecture page is linked from the index of documents', () => {
  const index = textOf('docs/README.md');
  const pages = documents.filter((file) => /^docs\/(guide|reference|architecture)\//.test(file));
  expect(pages.length).toBeGreaterThan(15);
  for (const page of pages) expect(index).toContain(`](${path.relative('docs', page)})`);
});

it('there are at most 40 decision records, each of at most 40 lines', () => {
  const records = documents.filter((file) => /^docs\/decisions\/\d{4}-.*\.md$/.test(file));
  expect(records.length).toBeLessThanOrEqual(40);
  expect(records.filter((file) => textOf(file).trimEnd().split('\n').length > 40)).toEqual([]);
});

it('the README is at most 150 lines long', () => {
  expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(150);
});
