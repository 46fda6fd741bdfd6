/** Builds the documents as a static site, and follows every link in it. */
import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { nodeTools, run } from '../clients/tools/install.ts';
import { searchOptions } from '../docs/site/search.ts';
import { pages, placeOf } from '../docs/site/pages.ts';

const root = path.resolve(import.meta.dirname, '..');
const site = path.join(root, 'build/site');

/** Text of each page by its address. */
const htmls = new Map<string, string>();

beforeAll(async () => {
  await run(process.execPath, ['docs/site/build.ts'], root);
  for (const file of globSync('**/*', { cwd: site, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const name = path.join(file.parentPath, file.name);
    htmls.set(`/${path.relative(site, name)}`, name.endsWith('.html') ? readFileSync(name, 'utf8') : '');
  }
}, 600_000);

/** Links of a page that lead nowhere in the site, and all that lead to other hosts to fetch something. */
function brokenIn(address: string, html: string): readonly string[] {
  return [...html.matchAll(/<(\w+)[^>]*? (?:href|src)="([^"]*)"/g)].flatMap(([, element = '', link = '']) => {
    const url = new URL(link, `http://site${address}`);
    if (url.host !== 'site') return element === 'a' ? [] : [link];
    const file = url.pathname.endsWith('/') ? `${url.pathname}index.html` : url.pathname;
    const target = file === address ? html : htmls.get(decodeURIComponent(file));
    if (target === undefined) return [link];
    const anchor = decodeURIComponent(url.hash.slice(1));
    return anchor === '' || target.includes(` id="${anchor}"`) ? [] : [link];
  });
}

describe('the site of the documents', () => {
  it('has a page for every document', () => {
    expect(pages.length).toBeGreaterThan(60);
    for (const page of pages) expect([...htmls.keys()]).toContain(`/${placeOf(page).replace(/md$/, 'html')}`);
  });

  it('has no link that leads nowhere, and fetches nothing from other hosts', () => {
    let links = 0;
    for (const [address, html] of htmls) {
      // Its links are for where it is not known where one is.
      if (address === '/404.html') continue;
      expect(brokenIn(address, html), address).toEqual([]);
      links += html.split('href="').length - 1;
    }
    expect(links).toBeGreaterThan(2_000);
  });

  it('would be found with a page, a heading or a host that it should not name', () => {
    const html = ['/nowhere.html', '#nowhere', './guide/operate.html#nowhere']
      .map((link) => `<a class="x" href="${link}">x</a>`)
      .join('<script src="https://cdn.example/x.js"></script>');
    expect(brokenIn('/docs/index.html', html)).toEqual([
      '/nowhere.html',
      'https://cdn.example/x.js',
      '#nowhere',
      'https://cdn.example/x.js',
      './guide/operate.html#nowhere',
    ]);
  });

  it('keeps words in angle brackets and the generated tables', () => {
    expect(htmls.get('/docs/guide/install.html')).toContain('@maxsimd/&lt;platform&gt;');
    expect(htmls.get('/docs/reference/metrics.html')).toContain('<code>maxsimd_encoder_ready</code>');
    expect(htmls.get('/docs/reference/metrics.html')).not.toContain('table:metrics');
  });
});

describe('the search of the site', () => {
  /** Addresses of sections, best first, as the page ranks them. */
  let find: (query: string) => readonly string[];

  beforeAll(async () => {
    const programs = await nodeTools('site', path.join(root, 'docs/site'));
    const MiniSearch = createRequire(path.join(programs, 'x'))('minisearch') as {
      loadJSON(text: string, options: object): { search(query: string): { id: string }[] };
    };
    const [chunk = ''] = globSync('assets/chunks/@localSearchIndexroot.*.js', { cwd: site });
    const { default: text } = (await import(pathToFileURL(path.join(site, chunk)).href)) as {
      default: string;
    };
    const index = MiniSearch.loadJSON(text, {
      fields: ['title', 'titles', 'text'],
      storeFields: ['title', 'titles'],
      searchOptions,
    });
    find = (query) => index.search(query).map(({ id }) => id);
  });

  it.each([
    ['filter results', 'guide/filter'],
    ['range of metadata', 'guide/filter'],
    ['RAG', 'guide/rag'],
    ['move from qdrant', 'guide/move-here'],
    ['elasticsearch', 'guide/move-here'],
    ['back up and restore', 'guide/operate'],
    ['upgrade', 'guide/operate'],
    ['alerts', 'guide/operate'],
    ['failover', 'guide/nodes'],
    ['memory per token vector', 'guide/sizing'],
    ['choose a model', 'guide/models'],
    ['read-only key', 'guide/tenants'],
    ['import csv', 'guide/import'],
    ['recall', 'guide/recall'],
    ['candidates', 'guide/recall'],
    ['tenant limits', 'guide/tenants'],
    ['late interaction', 'guide/models'],
    ['HTTP API', 'reference/api'],
    ['validation_error', 'reference/errors'],
  ])('answers "%s" with %s first', (query, page) => {
    expect(find(query)[0]).toMatch(new RegExp(`^/docs/${page}\\.html`));
  });
});
