/** Builds the documents as a static site, and follows every link in it. */
import { existsSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeTools, run } from '../../clients/tools/install.ts';
import { searchOptions } from '../../docs/site/search.ts';
import { pages, placeOf } from '../../docs/site/pages.ts';
import { numbersOf, rowOf, tableOf } from '../../docs/site/pictures.ts';
import { rounds } from '../rounds.ts';
import { accessibilityFaults, missingBrowser, startBrowser } from '../support/browser.ts';
import type { Browser, Page } from '../support/browser.ts';

const root = path.resolve(import.meta.dirname, '../..');
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
});

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

describe('pictures of the site', () => {
  const text =
    '## Speed\n\nA word.\n\n| Engine | ms | ms |\n| --- | --- | --- |\n| one | **1,200 / .5** | 3 |\n';

  it('take their figures from tables of the benchmarks', () => {
    const [row = new Map<string, string>()] = tableOf(text, 'Speed', ['Engine', 'ms', 'ms (2)']);
    expect(numbersOf(row, 'ms', 2)).toEqual([1_200, 0.5]);
    expect(numbersOf(row, 'ms (2)', 1)).toEqual([3]);
    const html = htmls.get('/docs/benchmarks.html') ?? '';
    expect(html.split('role="img"')).toHaveLength(2 * 5 + 1);
    expect(html).not.toMatch(/NaN|Infinity|undefined/);
  });

  it('end the build where a table, a column, a row or a number is missing', () => {
    const rows = tableOf(text, 'Speed', ['Engine']);
    expect(() => tableOf(text, 'Size', ['Engine'])).toThrow('docs/benchmarks.md has no heading "Size"');
    expect(() => tableOf(text, 'Speed', ['recall'])).toThrow(
      'no table with the columns "recall" under "Speed"',
    );
    expect(() => rowOf(rows, 'Engine', 'two')).toThrow('no row "two" in column "Engine"');
    expect(() => numbersOf(rowOf(rows, 'Engine', 'one'), 'Engine', 1)).toThrow('fewer than 1 numbers');
  });
});

const reason = missingBrowser();
describe.skipIf(reason !== undefined)(
  `the site in a browser${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    /** For people to look at. */
    const pictures = path.join(root, 'build/site-pictures');
    const kinds = [
      'index',
      'docs/index',
      'docs/guide/filter',
      'docs/reference/api',
      'ARCHITECTURE',
      'docs/benchmarks',
    ];
    const looks = [
      { colorScheme: 'light', width: 1280 },
      { colorScheme: 'dark', width: 390 },
      { colorScheme: 'light', width: 390 },
      { colorScheme: 'dark', width: 1280 },
    ] as const;
    let browser: Browser;
    /** The complaints of pages, and their requests for files that do not exist. */
    const problems: string[] = [];

    beforeAll(async () => {
      mkdirSync(pictures, { recursive: true });
      browser = await startBrowser();
    });
    afterAll(() => browser.close());

    async function openPage(page: string, { colorScheme, width }: (typeof looks)[number]): Promise<Page> {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
      const opened = await context.newPage();
      opened.on('pageerror', ({ message }) => problems.push(message));
      await opened.route('**/*', async (route) => {
        const { host, pathname } = new URL(route.request().url());
        const file = path.join(site, decodeURIComponent(pathname));
        if (host === 'site' && existsSync(file)) return route.fulfill({ path: file });
        problems.push(route.request().url());
        return route.abort();
      });
      await opened.goto(`http://site/${page}.html`, { waitUntil: 'networkidle' });
      // Before the page's own code runs, it listens to no key.
      await opened.waitForFunction(`document.querySelector('#app').__vue_app__ !== undefined`);
      return opened;
    }

    // Both widths and both schemes every time, all four together in the nightly rounds.
    it.each(looks.slice(0, rounds({ short: 2, nightly: 4 })))(
      'every kind of page is accessible ($colorScheme, $width)',
      async (look) => {
        for (const kind of kinds) {
          const page = await openPage(kind, look);
          const name = `${kind.replaceAll('/', '-')}-${look.colorScheme}-${look.width}.png`;
          await page.screenshot({ path: path.join(pictures, name), fullPage: true });
          expect(await accessibilityFaults(page), kind).toEqual([]);
          await page.close();
        }
        expect(problems.splice(0)).toEqual([]);
      },
    );

    it('fits a narrow screen on every page', async () => {
      const page = await openPage('docs/index', looks[1]);
      const names = [...htmls.keys()].filter((name) => name.endsWith('.html'));
      // One page takes the content of all others, one after another.
      const tooWide = await page.evaluate(`(async () => {
        const content = (of) => of.querySelector('.vp-doc > div');
        const tooWide = [];
        for (const name of ${JSON.stringify(names)}) {
          const other = new DOMParser().parseFromString(await (await fetch(name)).text(), 'text/html');
          content(document).innerHTML = content(other)?.innerHTML ?? '';
          const { scrollWidth, clientWidth } = document.documentElement;
          if (scrollWidth > clientWidth) tooWide.push(name);
        }
        return tooWide;
      })()`);
      expect(tooWide).toEqual([]);
      expect(problems.splice(0)).toEqual([]);
      await page.close();
    });

    it('is searched by keyboard', async () => {
      const page = await openPage('index', looks[0]);
      await page.keyboard.press('Control+k');
      await page.locator('input[type=search]:focus').waitFor();
      await page.keyboard.type('back up and restore');
      await page.locator('.result.selected').waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL(/guide\/operate\.html/);
      await page.close();
      expect(problems.splice(0)).toEqual([]);
    });

    it('has a link to the content and each link in reach of Tab', async () => {
      const page = await openPage('index', looks[0]);
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content');
      const names = new Set<unknown>();
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press('Tab');
        names.add(await page.evaluate('document.activeElement.textContent'));
      }
      for (const name of ['Guides', 'Benchmarks', 'Install', 'filter results'])
        expect([...names]).toContain(name);
      await page.close();
    });
  },
);

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

  it('leaves decisions out', () => {
    expect(find('decision').filter((id) => id.startsWith('/docs/decisions/'))).toEqual([]);
    expect([...htmls.keys()].filter((page) => page.startsWith('/docs/decisions/')).length).toBeGreaterThan(
      20,
    );
  });
});
