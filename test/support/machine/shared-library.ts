/** Shared libraries that tests load into processes of their own. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../../..');

/** Whether there is a compiler that builds them. */
export function hasCompiler(): boolean {
  return spawnSync('c++', ['--version']).status === 0;
}

/** Builds a library in `build`, once for each content of its files. The `.cpp` files are compiled, the others are included. */
export function sharedLibrary(name: string, files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(path.join(root, file)));
  const library = path.join(root, `build/${name}-${hash.digest('hex').slice(0, 16)}.so`);
  if (existsSync(library)) return library;
  const temporary = `${library}.${process.pid}`;
  const sources = files.filter((file) => file.endsWith('.cpp'));
  const flags = ['-std=c++20', '-O2', '-ffp-contract=off', '-shared', '-fPIC', '-Inative'];
  const built = spawnSync('c++', [...flags, '-o', temporary, ...sources, '-ldl'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(built.stderr);
  renameSync(temporary, library);
  return library;
}
