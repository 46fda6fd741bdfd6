/** Builds the console into `build/console`: one page, one script and one style sheet. */
import path from 'node:path';
import { build } from 'vite';

const root = path.resolve(import.meta.dirname, '../..');

await build({
  configFile: false,
  root: path.join(root, 'src', 'console'),
  base: './',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: path.join(root, 'build', 'console'),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: {
      output: { entryFileNames: 'console.js', assetFileNames: 'console.[ext]' },
    },
  },
});
