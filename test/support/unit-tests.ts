/**
 * Tells the unit tests, which start no process and listen on no port, from the others. The imports of a test file
 * decide: there is no list to keep. `no-processes.ts` refuses at run time what this rule overlooks.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const startsOrListens = /from 'node:(child_process|cluster)'|\.(listen|bindAsync)\(/;
const imports = /^(?:import|export) (?!type )[^;'"]*['"](\.[^'"]+)['"]/gm;

/** The unit tests, relative to `root`: test files that start no process and do not listen, neither they nor their imports. */
export function unitTests(root: string): readonly string[] {
  const known = new Map<string, boolean>();
  // Benchmarks install the packages of their peers in `bench`. These are no tests of ours.
  return globSync(['test/**/*.test.ts', 'bench/**/*.test.ts'], { cwd: root, exclude: ['**/node_modules/**'] })
    .filter((file) => !reachesProcess(root, file, known))
    .toSorted();
}

/** Follows imports through test code, up to the first files of `src`. It stops there, because much of `src` can listen. */
function reachesProcess(root: string, file: string, known: Map<string, boolean>): boolean {
  const found = known.get(file);
  if (found !== undefined) return found;
  // In a cycle every file is looked at anyway.
  known.set(file, false);
  const text = readFileSync(path.join(root, file), 'utf8');
  const imported = file.startsWith('src/') ? [] : [...text.matchAll(imports)].map(([, name = '']) => name);
  const reaches =
    startsOrListens.test(text) ||
    imported.some((name) => reachesProcess(root, path.join(path.dirname(file), name), known));
  known.set(file, reaches);
  return reaches;
}
