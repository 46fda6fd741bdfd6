/**
 * Makes the pages of the site from the documents in `docs` and beside the code. Their links to each other stay; links
 * to sources, which have no page, become their words.
 */
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pictureBlock } from './pictures.ts';

export const root = path.resolve(import.meta.dirname, '../..');

const patterns = [
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'docs/**/*.md',
  'deploy/README.md',
  'clients/*/README.md',
  'examples/README.md',
  'models/**/*.md',
  'bench/**/README.md',
];

export const pages: readonly string[] = globSync([...patterns], { cwd: root })
  .filter((file) => !file.includes('node_modules'))
  .toSorted();
const known = new Set(pages);
const index = 'docs/README.md';

const first = 'docs/site/first.md';
const benchmarks = ['peers', 'candidates', 'space', 'time', 'encoders'].map((name) =>
  pictureBlock(name, 680),
);

/** Where a document lies in the site: a folder's README is its index. The site begins with a page of its own. */
export function placeOf(file: string): string {
  return file === first ? 'index.md' : file.replace(/\/README\.md$/, '/index.md');
}

/** The page that a link of a document leads to; none where it leads to a source. */
function pageAt(file: string, target: string): string | undefined {
  const linked = path.posix.join(path.posix.dirname(file), target);
  return [linked, path.posix.join(linked, 'README.md')].find((candidate) => known.has(candidate));
}

/** The text of a document as the generator takes it. */
export function pageText(file: string): string {
  const text = textAt(placeOf(file), file);
  if (file === 'docs/benchmarks.md') {
    return text.replace(/^## /m, () => `## In pictures\n\n${benchmarks.join('\n')}\n## `);
  }
  if (file.startsWith('docs/decisions/')) return `---\nsearch: false\n---\n\n${text}`;
  return file === first ? firstPage(text) : text;
}

/** The first page takes what it is from the README, and the guides from the index of documents. */
function firstPage(text: string): string {
  const [, introduction = ''] = textAt(placeOf(first), 'README.md').split('\n\n');
  const [, guides = ''] = textAt(placeOf(first), index).split(/^## .*\n/m);
  return text
    .replace('{introduction}', introduction)
    .replace('{guides}', guides)
    .replaceAll(/^\{picture (\w+)\}$/gm, (_words, name: string) => pictureBlock(name, 680));
}

/** The text of a document as it stands at a place of the site, with links to pages from there. */
function textAt(place: string, file: string): string {
  return readFileSync(path.join(root, file), 'utf8')
    .replaceAll(/^<!-- .* -->\n/gm, '')
    .replaceAll(
      /(?<!!)\[((?:[^[\]]|\[[^\]]*\])+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)/g,
      (_link, words: string, target: string, anchor = '') => {
        const page = pageAt(file, target);
        if (page === undefined) return words;
        const way = path.posix.relative(path.posix.dirname(place), placeOf(page));
        return `[${words}](${way.startsWith('.') ? way : `./${way}`}${anchor})`;
      },
    );
}

interface Item {
  readonly text: string;
  readonly link: string;
}

interface Section {
  readonly text: string;
  readonly items: readonly (Item | Section)[];
}

/** The index of documents as a list of sections. */
export function sidebar(): readonly Section[] {
  return sectionsOf(readFileSync(path.join(root, index), 'utf8'), 2);
}

/** Sections below headings of a level, each with the pages that it links to before its own sections, and these. */
function sectionsOf(page: string, level: number): readonly Section[] {
  const [, ...sections] = page.split(new RegExp(`^${'#'.repeat(level)} `, 'm'));
  return sections.map((section) => {
    const [text = ''] = section.split('\n');
    const [own = ''] = section.split(/^#+ /m);
    const linked = [...own.matchAll(/\]\(([^)#]+)\)/g)].map(([, target = '']) => pageAt(index, target));
    const pagesOf = linked.filter((target) => target !== undefined).map((target) => itemOf(target));
    return {
      text,
      items: [...pagesOf, ...sectionsOf(section, level + 1)],
    };
  });
}

function itemOf(page: string): Item {
  const title = /^# (.+)$/m.exec(readFileSync(path.join(root, page), 'utf8'))?.[1] ?? page;
  return { text: title, link: `/${placeOf(page).replace(/(index)?\.md$/, '')}` };
}

/** Lays everything out for the generator. */
export function writePages(folder: string): void {
  for (const file of pages) {
    const place = path.join(folder, placeOf(file));
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, pageText(file));
  }
  for (const picture of globSync('docs/**/*.{png,svg,webp}', { cwd: root }))
    cpSync(path.join(root, picture), path.join(folder, picture));
  cpSync(path.join(root, 'src/console/icon.svg'), path.join(folder, 'public/icon.svg'));
  const settings = path.join(folder, '.vitepress');
  cpSync(path.join(import.meta.dirname, 'theme'), path.join(settings, 'theme'), { recursive: true });
  writeFileSync(path.join(settings, 'sidebar.json'), JSON.stringify(sidebar()));
  for (const file of ['config.mjs', 'search.ts'])
    cpSync(path.join(import.meta.dirname, file), path.join(settings, file));
}
