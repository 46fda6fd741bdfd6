/**
 * The `package.json` of each published package, made from the checkout's own.
 *
 *     maxsimd                        launcher and compiled JavaScript; depends on
 *       @maxsimd/models              the shipped models, `<name>/<version>/`
 *       @maxsimd/<platform>          optional: addon, SQLite extension, ONNX Runtime of one platform
 *       @maxsimd/node-<platform>     optional, and installed under an older Node alone: Node itself
 *     @maxsimd/<model>               a model that is not in the repository; users install it beside maxsimd
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { packageOfModel } from '../src/process/installation.ts';

export const root = path.resolve(import.meta.dirname, '..');

const dependencies = z.record(z.string(), z.string());
const manifestSchema = z.object({
  name: z.string(),
  version: z.string(),
  dependencies: dependencies.optional(),
});
const checkoutSchema = manifestSchema.extend({
  description: z.string(),
  license: z.string(),
  dependencies,
  optionalDependencies: dependencies,
});

export type Manifest = Readonly<Record<string, unknown>> & {
  readonly name: string;
  readonly version: string;
};

export const checkout = checkoutSchema.parse(readJson(path.join(root, 'package.json')));
/** The platforms that have packages. Each package is made on its own platform (`.github/workflows/release.yml`). */
export const platforms = ['linux-x64', 'linux-arm64', 'darwin-arm64'] as const;
export const platform = `${process.platform}-${process.arch}`;
/** The runtime that a platform's package bundles. */
export const bundled = 'onnxruntime-node';

const shared = { version: checkout.version, license: checkout.license, type: 'module' };
/** npm does not install an optional package of another platform. */
const here = {
  os: [process.platform],
  cpu: [process.arch],
  ...(process.platform === 'linux' ? { libc: ['glibc'] } : {}),
};

export function programManifest(): Manifest {
  const { [bundled]: _, ...own } = checkout.dependencies;
  return {
    name: checkout.name,
    description: checkout.description,
    ...shared,
    // The launcher needs this version. It finds the Node for the program.
    engines: { node: '>=20' },
    bin: { maxsimd: 'bin/maxsimd.mjs' },
    dependencies: { ...own, '@maxsimd/models': checkout.version },
    optionalDependencies: Object.fromEntries([
      ...platforms.map((name) => [`@maxsimd/${name}`, checkout.version]),
      ...platforms.map((name) => [`@maxsimd/node-${name}`, nodePackage(name).version]),
    ]),
  };
}

export function modelsManifest(): Manifest {
  return {
    name: '@maxsimd/models',
    description: 'The models of maxsimd',
    ...shared,
  };
}

/** A model that is not in the repository. */
export function furtherModelManifest(name: string): Manifest {
  return {
    name: packageOfModel(name),
    description: `${name}, a model for maxsimd`,
    ...shared,
  };
}

export function platformManifest(): Manifest {
  return {
    name: `@maxsimd/${platform}`,
    description: `The parts of maxsimd that are compiled, for ${platform}`,
    ...shared,
    ...here,
    dependencies: { [bundled]: checkout.dependencies[bundled] },
    bundleDependencies: [bundled],
  };
}

/** npm does not install an optional package whose `engines` do not fit. So only an older Node gets this package. */
export function nodeManifest(): Manifest {
  return {
    name: `@maxsimd/node-${platform}`,
    description: `Node.js for maxsimd under an older Node, for ${platform}`,
    version: nodePackage(platform).version,
    license: 'MIT',
    engines: { node: '<24' },
    ...here,
  };
}

/** The manifest of the runtime without its install script, which downloads, and without the packages of that script. */
export function bundledManifest(): Manifest {
  const manifest = readManifest(bundled);
  const common = 'onnxruntime-common';
  const { scripts: _scripts, devDependencies: _development, ...rest } = manifest;
  return { ...rest, dependencies: { [common]: manifest.dependencies?.[common] } };
}

/** The npm package with the Node of a platform. */
export function nodePackage(name: string): { readonly name: string; readonly version: string } {
  const found = Object.entries(checkout.optionalDependencies).find(([key]) => key.endsWith(`-${name}`));
  if (found === undefined) throw new Error(`package.json names no Node for ${name}`);
  return { name: found[0], version: found[1] };
}

export function readManifest(name: string): z.infer<typeof manifestSchema> & Record<string, unknown> {
  return manifestSchema.loose().parse(readJson(path.join(root, 'node_modules', name, 'package.json')));
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
