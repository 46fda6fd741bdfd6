/**
 * Tells the unit tests, which start no process and listen on no port, from the others. The imports of a test file
 * decide: there is no list to keep. `no-processes.ts` refuses at run time what this rule overlooks.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const startsOrListens = /from 'node:(child_process|cluster)'|\.(listen|bindAsync)\(/;
const imports = /^(?:import|export) (?!type )[^;'"]*['"](\.[^'"]+)['"]/gm;

/** The test files, relative to `root`, of which neither they nor what they import starts a process or listens. */
export function unitTests(root: string): readonly string[] {
  const known = new Map<string, boolean>();
  // A benchmark installs its peers beside it.
  return globSync(['test/**/*.test.ts', 'bench/**/*.test.ts'], { cwd: root, exclude: ['**/node_modules/**'] })
    .filter((file) => !reachesProcess(root, file, known))
    .toSorted();
}

/** Imports are followed through test code, up to the first files of `src`: much of `src` can listen, if asked to. */
function reachesProcess(root: string, file: string, known: Map<string, boolean>): boolean {
  const found = known.get(file);
  if (found !== undefined) return found;
  // A cycle leads to no file that is not looked at anyway.
  known.set(file, false);
  const text = readFileSync(path.join(root, file), 'utf8');
  const imported = file.startsWith('src/') ? [] : [...text.matchAll(imports)].map(([, name = '']) => name);
  const reaches =
    startsOrListens.test(text) ||
    imported.some((name) => reachesProcess(root, path.join(path.dirname(file), name), known));
  known.set(file, reaches);
  return reaches;
}
