/** The packages of the clients, as they are published: one for npm, and a wheel and a source archive for PyPI. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment, run } from './install.ts';

const root = path.resolve(import.meta.dirname, '../..');
const clients = path.join(root, 'clients');

/** The name of the tarball that is left in the directory. */
export async function packTypeScript(directory: string): Promise<string> {
  const builds = path.join(root, 'build/clients');
  mkdirSync(builds, { recursive: true });
  const stage = mkdtempSync(path.join(builds, 'typescript-'));
  try {
    const source = path.join(clients, 'typescript');
    const compiler = path.join(root, 'node_modules/.bin/tsc');
    await run(compiler, ['-p', source, '--outDir', path.join(stage, 'dist')], root);
    for (const name of ['package.json', 'README.md', 'LICENSE'])
      cpSync(path.join(source, name), path.join(stage, name));
    const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', directory];
    return (await run('npm', args, stage)).trim();
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** The names of the files that are left in the directory. */
export async function packPython(
  directory: string,
): Promise<{ readonly wheel: string; readonly source: string }> {
  const binaries = await pythonEnvironment(
    'python-build',
    path.join(clients, 'python/requirements-build.txt'),
  );
  const source = path.join(clients, 'python');
  await run(path.join(binaries, 'hatchling'), ['build', '--directory', directory], source);
  const names = readdirSync(directory);
  const named = (pattern: RegExp): string => {
    const name = names.find((each) => pattern.test(each));
    if (name === undefined) throw new Error('hatchling left no package');
    return name;
  };
  return { wheel: named(/^maxsimd-.*\.whl$/), source: named(/^maxsimd-.*\.tar\.gz$/) };
}
