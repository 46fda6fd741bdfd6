/**
 * The places of files that are not JavaScript. In a checkout the build and npm put them there. An installed program has them
 * from the package of its platform (such as `@maxsimd/linux-x64`) and from that of the models (`packages/manifests.ts`).
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const platformPackage = `@maxsimd/${process.platform}-${process.arch}`;
const modelsPackage = '@maxsimd/models';
/** Models that are not in the repository, because they are large. A checkout builds them, and each has a package of its own. */
export const furtherModels: readonly string[] = ['e5-small-multilingual-maxsim'];
const requireHere = createRequire(import.meta.url);

/** Whether this is a checkout: no package holds the sources of the addon. */
const isCheckout = existsSync(path.join(root, 'CMakeLists.txt'));

export function programVersion(): string {
  const manifest = readFileSync(path.join(root, 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

/** A file that the build makes: the addon, or an extension of SQLite. */
export function builtFile(name: string): string {
  return isCheckout
    ? path.join(root, 'build', 'Release', name)
    : path.join(path.dirname(manifestOf(platformPackage)), name);
}

export function hasBuiltFile(name: string): boolean {
  try {
    return existsSync(builtFile(name));
  } catch {
    return false;
  }
}

/** The library that drives the engine's GPU (`npm run cuda:engine`). No package has it. */
export function cudaLibrary(): string {
  return isCheckout ? path.join(root, '.cuda', 'maxsimd-cuda.so') : builtFile('maxsimd-cuda.so');
}

/** Resolves ONNX Runtime's package. The package of the platform bundles it without the files of other platforms. */
export function requireOfRuntime(): NodeJS.Require {
  return isCheckout ? requireHere : createRequire(manifestOf(platformPackage));
}

export function consoleDirectory(): string {
  return isCheckout ? path.join(root, 'build', 'console') : path.join(root, 'console');
}

export function shippedModels(): string {
  return isCheckout ? path.join(root, 'models') : path.dirname(manifestOf(modelsPackage));
}

export function packageOfModel(name: string): string {
  return `@maxsimd/${name}`;
}

/** The folders of the models besides those of `shippedModels`: one for each package that is installed. */
export function packagedModels(): string[] {
  if (isCheckout) return [];
  return furtherModels.flatMap((name) => {
    try {
      return [path.dirname(requireHere.resolve(`${packageOfModel(name)}/package.json`))];
    } catch {
      return [];
    }
  });
}

/** The script that builds a model. No package has it. */
export function buildScript(): string | undefined {
  return isCheckout ? path.join(root, 'models', 'build.sh') : undefined;
}

function manifestOf(name: string): string {
  try {
    return requireHere.resolve(`${name}/package.json`);
  } catch (error) {
    throw new Error(
      `the package ${name} is not installed: install maxsimd with optional dependencies, on a platform that has one`,
      { cause: error },
    );
  }
}
