/**
 * Places the CUDA execution provider beside the installed onnxruntime-node, and NVIDIA's libraries where the encoder looks for
 * them. Downloads are kept outside of `node_modules`, so that a run after `npm ci` downloads nothing. It can be repeated: files
 * that are in place stay.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { makeDirectories } from '../../../process/make-directories.ts';
import { type CudaPlaces, nvidiaLibraries, providerLibraries } from './cuda-library.ts';
import { nvidiaPackages, type PinnedPackage, providerPackage, requirementsOf } from './packages.ts';

/** An error whose message is printed without a stack. */
export class CudaInstallError extends Error {
  override readonly name = 'CudaInstallError';
}

export interface Host {
  readonly platform: string;
  readonly arch: string;
  /** undefined where the C library is not glibc. */
  readonly glibc: string | undefined;
}

export interface CudaInstallOptions {
  readonly host: Host;
  /** Version of the installed onnxruntime-node. */
  readonly runtimeVersion: string;
  readonly places: CudaPlaces;
  /** Where downloads are kept. */
  readonly store: string;
  /** NVIDIA's libraries come from the system, and are not fetched. */
  readonly systemLibraries: boolean;
  /** Unpacks packages into a directory and compares each with its checksum. Errors are `CudaInstallError`s. */
  readonly fetch: (requirements: string, target: string) => void;
  readonly onProgress: (line: string) => void;
}

/** glibc of the manylinux_2_28 wheel. */
const glibcOldest = [2, 28] as const;

export function installCuda(options: CudaInstallOptions): void {
  checkHost(options.host);
  const { runtimeVersion, places, onProgress, systemLibraries } = options;
  if (runtimeVersion !== providerPackage.version) {
    throw new CudaInstallError(
      `onnxruntime-node is ${runtimeVersion}, and this program knows the provider for ${providerPackage.version}: ` +
        'install that version, or change src/encoder/inference/cuda/packages.ts',
    );
  }
  const provider = fetched([providerPackage], options);
  checkSameBuild(places.runtime, provider);
  for (const library of providerLibraries) place(found(provider, library), places.runtime, library);
  onProgress(`the CUDA provider ${runtimeVersion} is in ${places.runtime}`);
  if (systemLibraries) {
    rmSync(places.nvidia, { recursive: true, force: true });
    onProgress(`using the system's ${nvidiaLibraries.join(', ')}`);
    return;
  }
  const nvidia = fetched(nvidiaPackages, options);
  makeDirectories(places.nvidia);
  // All of them are placed, because cuDNN loads its parts from its own folder when it needs them.
  for (const file of sharedLibrariesUnder(nvidia)) place(file, places.nvidia, path.basename(file));
  for (const library of nvidiaLibraries) found(places.nvidia, library);
  onProgress(`NVIDIA's libraries (CUDA 13.0, cuDNN 9) are in ${places.nvidia}`);
}

function checkHost({ platform, arch, glibc }: Host): void {
  if (platform !== 'linux' || arch !== 'x64') {
    throw new CudaInstallError(
      `the CUDA provider exists for linux-x64 only, not for ${platform}-${arch}; the CPU provider needs no installation`,
    );
  }
  const [major = 0, minor = 0] = (glibc ?? '').split('.').map(Number);
  const [oldestMajor, oldestMinor] = glibcOldest;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    throw new CudaInstallError(
      `the CUDA provider needs glibc ${glibcOldest.join('.')} or later, here is ${glibc ?? 'another C library'}`,
    );
  }
}

/** The folder that holds these packages. They are downloaded if it does not exist. */
function fetched(
  packages: readonly PinnedPackage[],
  { store, fetch, onProgress }: CudaInstallOptions,
): string {
  const requirements = requirementsOf(packages);
  const folder = path.join(store, createHash('sha256').update(requirements).digest('hex').slice(0, 16));
  if (existsSync(folder)) return folder;
  const megabytes = packages.reduce((sum, each) => sum + each.megabytes, 0);
  const names = packages.map(({ name, version }) => `${name} ${version}`);
  onProgress(`fetching ${names.join(', ')} (${megabytes} MB)`);
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  makeDirectories(partial);
  fetch(requirements, partial);
  renameSync(partial, folder);
  return folder;
}

/** A provider of another build crashes, or fails late. Both runtimes hold the commit that they were built from. */
function checkSameBuild(runtime: string, provider: string): void {
  const ours = buildOf(found(runtime, 'libonnxruntime.so.1'));
  const library = sharedLibrariesUnder(provider).find((file) =>
    /^libonnxruntime\.so\.\d+\.\d+/.test(path.basename(file)),
  );
  const theirs = library === undefined ? undefined : buildOf(library);
  if (ours === undefined || ours !== theirs) {
    throw new CudaInstallError(
      `onnxruntime-node was built from commit ${ours ?? '(unknown)'}, the provider from ${theirs ?? '(unknown)'}`,
    );
  }
}

function buildOf(library: string): string | undefined {
  const content = readFileSync(library);
  const at = content.indexOf('git-commit-id=');
  return at < 0 ? undefined : /^git-commit-id=([0-9a-f]+)/.exec(content.toString('latin1', at, at + 64))?.[1];
}

function found(directory: string, name: string): string {
  const file = sharedLibrariesUnder(directory).find((each) => path.basename(each) === name);
  if (file === undefined) throw new CudaInstallError(`${directory} holds no ${name}`);
  return file;
}

function sharedLibrariesUnder(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.so(\.[\d.]+)?$/.test(name))
    .map((name) => path.join(directory, name));
}

/** Links, or copies where the file systems differ, unless the same file is there. */
function place(file: string, directory: string, name: string): void {
  const target = path.join(directory, name);
  if (existsSync(target) && sameFile(file, target)) return;
  rmSync(target, { force: true });
  try {
    linkSync(file, target);
  } catch {
    // It is renamed at the end, so that an interrupted copy is not taken for the library.
    copyFileSync(file, `${target}.partial`);
    renameSync(`${target}.partial`, target);
  }
}

function sameFile(one: string, other: string): boolean {
  const [a, b] = [statSync(one), statSync(other)];
  return (a.dev === b.dev && a.ino === b.ino) || readFileSync(one).equals(readFileSync(other));
}
