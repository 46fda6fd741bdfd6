/** The site's shape. It asks nothing of other hosts: fonts, search and scripts are its own. */
import { defineConfig } from 'vitepress';
import { searchOptions } from './search.ts';
import sidebar from './sidebar.json' with { type: 'json' };

export default defineConfig({
  title: 'maxsimd',
  description: 'Multi-tenant, multi-vector retrieval',
  cleanUrls: false,
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions } } },
    outline: [2, 3],
    sidebar,
  },
  markdown: {
    // A `<name>` is a placeholder here, never an element.
    html: false,
    anchor: { slugify: anchorOf },
    toc: { level: [2, 3] },
  },
});

/** As the documents' own links have it. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
