/**
 * Where the files lie that are not JavaScript. In a checkout the build and npm put them into the checkout; in an installed
 * package they come with the package of the platform (`@maxsimd/linux-x64` and its like) and that of the model
 * (`packages/manifests.ts`).
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const platformPackage = `@maxsimd/${process.platform}-${process.arch}`;
const modelPackage = '@maxsimd/model-minilm-l6';
const requireHere = createRequire(import.meta.url);

/** Whether this is a checkout; no package holds the sources of the addon. */
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

/** What drives a GPU for the engine (`npm run cuda:engine`); no package brings it. */
export function cudaLibrary(): string {
  return isCheckout ? path.join(root, '.cuda', 'maxsimd-cuda.so') : builtFile('maxsimd-cuda.so');
}

/** Resolves ONNX Runtime's package, which the package of the platform bundles without the files of other platforms. */
export function requireOfRuntime(): NodeJS.Require {
  return isCheckout ? requireHere : createRequire(manifestOf(platformPackage));
}

/** The directory of the console's page. */
export function consoleDirectory(): string {
  return isCheckout ? path.join(root, 'build', 'console') : path.join(root, 'console');
}

/** The directory of the models that come with the program. */
export function shippedModels(): string {
  return isCheckout ? path.join(root, 'models') : path.dirname(manifestOf(modelPackage));
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
