/**
 * ONNX Runtime's CUDA execution provider: where it lies, and which libraries must be loaded before it.
 *
 * The runtime looks for the provider beside its own binaries. The provider needs NVIDIA's libraries. The loader finds those of a
 * system-wide CUDA by itself. Those that `npm run cuda:install` has placed lie in a folder that the loader does not know. So
 * they are loaded first: the loader does not search for a library that is in memory already.
 */
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { requireOfRuntime } from '../../../process/installation.ts';

export const providerLibraries = [
  'libonnxruntime_providers_shared.so',
  'libonnxruntime_providers_cuda.so',
] as const;

/** The libraries of CUDA 13 and cuDNN 9 that the provider needs. Each comes after those that it needs itself. */
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

/** RTLD_NODELETE of glibc: the library stays loaded, although Node closes it because it is no addon. */
const keepLoaded = 0x1000;

export interface CudaPlaces {
  /** The runtime's own binaries. */
  readonly runtime: string;
  /** NVIDIA's libraries that `npm run cuda:install` places. */
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

/** Whether the provider is installed. It is not loaded, because that would print an error where it fails. */
export function hasCudaLibrary({ runtime } = cudaPlaces()): boolean {
  return existsSync(path.join(runtime, 'libonnxruntime_providers_cuda.so'));
}

/**
 * Loads everything that the provider needs. Returns why CUDA cannot be used here, or undefined. The runtime's own attempt would
 * take longer and print to standard error without the reason.
 */
export function cudaProblem(places = cudaPlaces()): string | undefined {
  if (!hasCudaLibrary(places)) return 'its provider is not installed: npm run cuda:install in a checkout';
  const driver = loadProblem('libcuda.so.1');
  return driver === undefined ? nvidiaProblem(places) : `there is no NVIDIA driver (${driver})`;
}

/** Loads NVIDIA's libraries from the folder of `cuda:install`, if there is one. Returns what is wrong with them, or undefined. */
export function nvidiaProblem({ nvidia }: CudaPlaces): string | undefined {
  if (!existsSync(nvidia)) return undefined;
  for (const library of nvidiaLibraries) {
    const problem = loadProblem(path.join(nvidia, library));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Loads a shared library for good. Returns why that failed, or undefined. The loader searches for a bare name. */
export function loadProblem(file: string): string | undefined {
  try {
    process.dlopen({ exports: {} }, file, constants.dlopen.RTLD_NOW | keepLoaded);
  } catch (error) {
    const { message } = error as Error;
    // Node says this of a library that it has loaded and that is no addon.
    if (!message.startsWith('Module did not self-register')) return message;
  }
  return undefined;
}

function runtimePackage(): string {
  return requireOfRuntime().resolve('onnxruntime-node/package.json');
}
