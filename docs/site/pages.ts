/**
 * What the site is made of: the documents, and those that lie beside what they describe. Their links to each other stay; links
 * to sources, which have no page, become their words.
 */
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');

const patterns = [
  'README.md',
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

/** Where a document lies in the site: a folder's README is its index. */
export function placeOf(file: string): string {
  return file.replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The page that a link of a document leads to; none where it leads to a source. */
function pageAt(file: string, target: string): string | undefined {
  const linked = path.posix.join(path.posix.dirname(file), target);
  return [linked, path.posix.join(linked, 'README.md')].find((candidate) => known.has(candidate));
}

/** The text of a document as the generator takes it. */
export function pageText(file: string): string {
  return readFileSync(path.join(root, file), 'utf8')
    .replaceAll(/^<!-- .* -->\n/gm, '')
    .replaceAll(
      /(?<!!)\[((?:[^[\]]|\[[^\]]*\])+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)/g,
      (_link, words: string, target: string, anchor = '') => {
        const page = pageAt(file, target);
        if (page === undefined) return words;
        const way = path.posix.relative(path.posix.dirname(placeOf(file)), placeOf(page));
        return `[${words}](${way.startsWith('.') ? way : `./${way}`}${anchor})`;
      },
    );
}

interface Item {
  readonly text: string;
  readonly link: string;
}

/** The index of documents as a list of sections. */
export function sidebar(): readonly { readonly text: string; readonly items: readonly Item[] }[] {
  const index = 'docs/README.md';
  const [, ...sections] = readFileSync(path.join(root, index), 'utf8').split(/^## /m);
  return sections.map((section) => {
    const [text = ''] = section.split('\n');
    const linked = [...section.matchAll(/\]\(([^)#]+)\)/g)].map(([, target = '']) => pageAt(index, target));
    const items = linked.filter((page) => page !== undefined).map((page) => itemOf(page));
    return { text, items };
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
  const settings = path.join(folder, '.vitepress');
  mkdirSync(settings);
  writeFileSync(path.join(settings, 'sidebar.json'), JSON.stringify(sidebar()));
  for (const file of ['config.mjs', 'search.ts'])
    cpSync(path.join(import.meta.dirname, file), path.join(settings, file));
}
