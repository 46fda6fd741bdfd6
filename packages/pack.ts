/** Collects the files of each package of the service under `build/packages`, and packs them with `npm pack`, like the clients. */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { packFrameworks, packPython, packTypeScript } from '../clients/tools/pack.ts';
import {
  bundled,
  bundledManifest,
  furtherModelManifest,
  type Manifest,
  modelsManifest,
  nodeManifest,
  nodePackage,
  platformManifest,
  programManifest,
  root,
} from './manifests.ts';
import { furtherModels } from '../src/process/installation.ts';

const stages = path.join(root, 'build', 'packages');
const run = promisify(execFile);
const modules = path.join(root, 'node_modules');

/** Names of files in the directory. */
export interface Packed {
  readonly service: readonly string[];
  readonly client: string;
  readonly frameworks: readonly string[];
  readonly wheel: string;
}

/** Empties the directory and packs everything that this platform can make. */
export async function packAll(directory: string): Promise<Packed> {
  const service = await packService(directory);
  const client = await packTypeScript(directory);
  const frameworks = await packFrameworks(directory, client);
  const { wheel } = await packPython(directory);
  return { service, client, frameworks, wheel };
}

/**
 * Empties the directory and packs the service of this platform into it, and beside it the further models that are built. Returns the
 * names of the service's files, `maxsimd-*.tgz`.
 */
export async function packService(directory: string): Promise<string[]> {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const staged = [stageProgram(), stageModels(), stagePlatform(), stageNode()];
  await packStages(staged, directory);
  const service = readdirSync(directory).toSorted();
  await packFurtherModels(path.join(root, 'models'), directory);
  return service;
}

/** Packs each model that is not in the repository and that is built in this folder of models. */
export async function packFurtherModels(models: string, directory: string): Promise<void> {
  const built = furtherModels.filter((name) => existsSync(path.join(models, name, '1/manifest.json')));
  await packStages(
    built.map((name) => stageFurtherModel(models, name)),
    directory,
  );
}

async function packStages(staged: readonly string[], directory: string): Promise<void> {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', directory];
  await Promise.all(staged.map(async (stage) => run('npm', args, { cwd: stage })));
}

function stageProgram(): string {
  const stage = stageOf(programManifest());
  execFileSync(path.join(modules, '.bin', 'tsc'), ['-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  copy(path.join(root, 'build'), stage, ['console']);
  copy(root, stage, ['proto', 'README.md', 'CHANGELOG.md', 'src/cli/models/sample-texts.txt.gz']);
  cpSync(path.join(root, 'src/bootstrap/launcher.mjs'), path.join(stage, 'bin/maxsimd.mjs'));
  chmodSync(path.join(stage, 'bin/maxsimd.mjs'), 0o755);
  return stage;
}

function stageModels(): string {
  const stage = stageOf(modelsManifest());
  copy(path.join(root, 'models'), stage, ['bge-small-maxsim', 'minilm-l6-maxsim']);
  return stage;
}

function stageFurtherModel(models: string, name: string): string {
  const stage = stageOf(furtherModelManifest(name));
  copy(models, stage, [name]);
  return stage;
}

function stagePlatform(): string {
  const stage = stageOf(platformManifest());
  copy(path.join(root, 'build', 'Release'), stage, ['maxsimd.node', 'page-checksums.so']);
  // A part of the addon.
  cpSync(path.join(modules, 'usearch', 'LICENSE'), path.join(stage, 'LICENSE-usearch'));
  const runtime = path.join(stage, 'node_modules', bundled);
  copy(path.join(modules, bundled), runtime, ['dist', 'README.md']);
  // Providers for GPUs may be installed beside the runtime. They are not packed.
  const binaries = path.join('bin', 'napi-v6', process.platform, process.arch);
  const source = path.join(modules, bundled, binaries);
  const own = readdirSync(source).filter((name) => /^(libonnxruntime\.|onnxruntime_binding)/.test(name));
  copy(source, path.join(runtime, binaries), own);
  writeManifest(runtime, bundledManifest());
  copy(modules, path.join(stage, 'node_modules'), ['onnxruntime-common']);
  cpSync(path.join(import.meta.dirname, 'onnxruntime-license.txt'), path.join(runtime, 'LICENSE'));
  return stage;
}

function stageNode(): string {
  const stage = stageOf(nodeManifest());
  // The licence of Node replaces ours.
  copy(path.join(modules, nodePackage(`${process.platform}-${process.arch}`).name), stage, [
    'bin/node',
    'LICENSE',
  ]);
  return stage;
}

function stageOf(manifest: Manifest): string {
  const stage = path.join(stages, manifest.name);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  writeManifest(stage, manifest);
  copy(root, stage, ['LICENSE']);
  return stage;
}

function writeManifest(directory: string, manifest: Manifest): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

function copy(from: string, to: string, names: readonly string[]): void {
  for (const name of names) cpSync(path.join(from, name), path.join(to, name), { recursive: true });
}
