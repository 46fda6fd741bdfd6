/** Whether ONNX Runtime's CUDA execution provider is installed; found out without loading it, which would print an error. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** Looks beside the runtime's own binaries, where its install script and ours put the library. */
export function hasCudaLibrary(): boolean {
  const packageFile = createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
  const binaries = path.join(path.dirname(packageFile), 'bin');
  const library = path.join(process.platform, process.arch, 'libonnxruntime_providers_cuda.so');
  return readdirSync(binaries).some((napi) => existsSync(path.join(binaries, napi, library)));
}
