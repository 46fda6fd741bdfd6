/** The packages of the clients, as they are published: for npm, and a wheel and a source archive for PyPI. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { nodeTools, pythonEnvironment, run } from './install.ts';

const root = path.resolve(import.meta.dirname, '../..');
const clients = path.join(root, 'clients');
const manifestSchema = z.looseObject({
  name: z.string(),
  version: z.string().optional(),
  peerDependencies: z.record(z.string(), z.string()).optional(),
});
const compiler = path.join(root, 'node_modules/.bin/tsc');

/** The name of the tarball that is left in the directory. */
export async function packTypeScript(directory: string): Promise<string> {
  const builds = path.join(root, 'build/clients');
  mkdirSync(builds, { recursive: true });
  const stage = mkdtempSync(path.join(builds, 'typescript-'));
  try {
    const source = path.join(clients, 'typescript');
    await run(compiler, ['-p', source, '--outDir', path.join(stage, 'dist')], root);
    return await packed(source, stage, directory);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** A new folder beside the modules of LangChain.js and LlamaIndex.TS, which are as they are pinned here. */
export async function frameworkFolder(prefix: string): Promise<string> {
  const programs = await nodeTools('node-frameworks', path.join(import.meta.dirname, 'frameworks'));
  return mkdtempSync(path.join(programs, '../..', prefix));
}

/** The packages for frameworks, compiled against the packed client: the names of the tarballs in the directory. */
export async function packFrameworks(directory: string, client: string): Promise<string[]> {
  const stage = await frameworkFolder('packages-');
  try {
    await unpack(path.join(directory, client), path.join(stage, 'node_modules/@maxsimd/client'));
    const tarballs: string[] = [];
    for (const name of ['langchain', 'llamaindex']) {
      const compiled = path.join(stage, name);
      const source = path.join(clients, name);
      cpSync(path.join(source, 'src'), path.join(compiled, 'src'), { recursive: true });
      const configuration = {
        extends: path.join(clients, 'typescript/tsconfig.json'),
        compilerOptions: { rootDir: 'src', outDir: 'dist', paths: {} },
        include: ['src'],
      };
      writeFileSync(path.join(compiled, 'tsconfig.json'), JSON.stringify(configuration));
      await run(compiler, ['-p', compiled], root);
      tarballs.push(await packed(source, compiled, directory));
    }
    return tarballs;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

export async function unpack(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', folder], folder);
}

async function packed(source: string, stage: string, directory: string): Promise<string> {
  cpSync(path.join(source, 'README.md'), path.join(stage, 'README.md'));
  cpSync(path.join(root, 'LICENSE'), path.join(stage, 'LICENSE'));
  writeFileSync(path.join(stage, 'package.json'), JSON.stringify(publishedManifest(source), undefined, 2));
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', directory];
  return (await run('npm', args, stage)).trim();
}

/**
 * The manifest of a client with the version of the checkout. The source has none, so that npm makes no package of it: the
 * compiled files would be missing.
 */
function publishedManifest(source: string): object {
  const read = (folder: string) =>
    manifestSchema.parse(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')));
  const { '//': _note, name, peerDependencies, ...rest } = read(source);
  const { version } = read(root);
  const peers = peerDependencies && { ...peerDependencies, '@maxsimd/client': version };
  return { name, version, ...rest, ...(peers && { peerDependencies: peers }) };
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
