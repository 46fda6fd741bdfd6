/** The site's shape. It asks nothing of other hosts: fonts, search and scripts are its own. */
import { defineConfig } from 'vitepress';
import { searchOptions } from './search.ts';
import sidebar from './sidebar.json' with { type: 'json' };

export default defineConfig({
  title: 'maxsimd',
  description: 'Multi-tenant, multi-vector retrieval',
  cleanUrls: false,
  head: [['link', { rel: 'icon', href: '/icon.svg' }]],
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions } } },
    outline: [2, 3],
    nav: [
      { text: 'Guides', link: '/docs/', activeMatch: '^/docs/(guide/|$)' },
      { text: 'Reference', link: '/docs/reference/api', activeMatch: '^/docs/reference/' },
      { text: 'Architecture', link: '/ARCHITECTURE', activeMatch: '^/(ARCHITECTURE|docs/architecture/)' },
      { text: 'Benchmarks', link: '/docs/benchmarks' },
    ],
    sidebar,
  },
  markdown: {
    // A `<name>` is a placeholder here, never an element.
    html: false,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: anchorOf },
    toc: { level: [2, 3] },
    config: drawBlocks,
  },
});

/** As the documents' own links have it. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Blocks of the language `picture` are SVG of the build, and stand in the page as they are. Indented code is a block like others. */
function drawBlocks(markdown) {
  const { rules } = markdown.renderer;
  const { fence } = rules;
  rules.fence = (tokens, at, ...rest) =>
    tokens[at].info === 'picture' ? tokens[at].content : fence(tokens, at, ...rest);
  rules.code_block = rules.fence;
}
