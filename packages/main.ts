/** Entry of `npm run package`: makes the packages of this platform, in `build/release`. */
import path from 'node:path';
import { root } from './manifests.ts';
import { pack } from './pack.ts';

const directory = path.join(root, 'build', 'release');
for (const name of await pack(directory)) process.stdout.write(`${path.join(directory, name)}\n`);
