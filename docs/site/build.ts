/** `npm run docs`: the documents as a static site in `build/site`. The generator is installed once, apart from the program's packages. */
import { rmSync } from 'node:fs';
import path from 'node:path';
import { nodeTools, run } from '../../clients/tools/install.ts';
import { root, writePages } from './pages.ts';

const site = path.join(root, 'build', 'site');
const programs = await nodeTools('site', import.meta.dirname);
// Beside the generator's packages, which its pages import.
const folder = path.resolve(programs, '../../pages');
rmSync(folder, { recursive: true, force: true });
writePages(folder);
await run(path.join(programs, 'vitepress'), ['build', folder, '--outDir', site], root);
process.stdout.write(`${path.join(site, 'index.html')}\n`);
