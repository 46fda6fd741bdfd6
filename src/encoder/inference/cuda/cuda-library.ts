/**
 * ONNX Runtime's CUDA execution provider: where it lies, and what must be in memory before the runtime can load it.
 *
 * The runtime looks for the provider beside its own binaries. The provider names NVIDIA's libraries without saying
 * where they are; the loader finds those of a system-wide CUDA by itself. Those that `npm run cuda:install` brought
 * lie in a folder that the loader does not know, so they are loaded first: a library whose name is in memory
 * already is not searched for again.
 */
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { requireOfRuntime } from '../../../installation.ts';

export const providerLibraries = [
  'libonnxruntime_providers_shared.so',
  'libonnxruntime_providers_cuda.so',
] as const;

/** What the provider needs of CUDA 13 and cuDNN 9, each after what it needs itself. */
export const nvidiaLibraries = [
  'libcudart.so.13',
  'libcublasLt.so.13',
  'libcublas.so.13',
  'libcurand.so.10',
  'libnvrtc-builtins.so.13.0',
  'libnvrtc.so.13',
  'libcudnn_graph.so.9',
  'libcudnn_ops.so.9',
  'libcudnn.so.9',
] as const;

/** RTLD_NODELETE of glibc: what was loaded stays, though Node closes it when it turns out to be no addon. */
const keepLoaded = 0x1000;

export interface CudaPlaces {
  /** The runtime's own binaries. */
  readonly runtime: string;
  /** NVIDIA's libraries, where they were installed for us alone. */
  readonly nvidia: string;
}

export function cudaPlaces(): CudaPlaces {
  const bin = path.join(path.dirname(runtimePackage()), 'bin', 'napi-v6');
  const runtime = path.join(bin, process.platform, process.arch);
  return { runtime, nvidia: path.join(runtime, 'nvidia') };
}

/** Version of the installed onnxruntime-node. */
export function runtimeVersion(): string {
  return (JSON.parse(readFileSync(runtimePackage(), 'utf8')) as { readonly version: string }).version;
}

/** Whether the provider is installed; detected without loading it, which would print an error. */
export function hasCudaLibrary({ runtime } = cudaPlaces()): boolean {
  return existsSync(path.join(runtime, 'libonnxruntime_providers_cuda.so'));
}

/**
 * Why CUDA cannot be used here, or undefined after everything that the provider needs has been loaded. Cheaper and
 * clearer than the runtime's own attempt, which prints to standard error and keeps the reason to itself.
 */
export function cudaProblem(places = cudaPlaces()): string | undefined {
  if (!hasCudaLibrary(places)) return 'its provider is not installed: npm run cuda:install';
  const driver = loadProblem('libcuda.so.1');
  return driver === undefined ? nvidiaProblem(places) : `there is no NVIDIA driver (${driver})`;
}

/** Loads NVIDIA's libraries from our folder, where there is one; what is wrong with them, or undefined. */
export function nvidiaProblem({ nvidia }: CudaPlaces): string | undefined {
  if (!existsSync(nvidia)) return undefined;
  for (const library of nvidiaLibraries) {
    const problem = loadProblem(path.join(nvidia, library));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Loads a shared library for good; why that failed, or undefined. A bare name is searched for as the loader does. */
export function loadProblem(file: string): string | undefined {
  try {
    process.dlopen({ exports: {} }, file, constants.dlopen.RTLD_NOW | keepLoaded);
  } catch (error) {
    const { message } = error as Error;
    // Node's words for a library that was loaded and is no addon.
    if (!message.startsWith('Module did not self-register')) return message;
  }
  return undefined;
}

function runtimePackage(): string {
  return requireOfRuntime().resolve('onnxruntime-node/package.json');
}
