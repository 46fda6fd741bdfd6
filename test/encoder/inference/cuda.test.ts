/** Tests without a GPU: the files of `cuda:install`, the messages on a host without CUDA, and the graph for GPUs. */
import { Rotation } from '../../../src/encoder/inference/rows.ts';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  CudaInstallError,
  type CudaInstallOptions,
  installCuda,
} from '../../../src/encoder/inference/cuda/install.ts';
import {
  nvidiaPackages,
  providerPackage,
  requirementsOf,
} from '../../../src/encoder/inference/cuda/packages.ts';
import { pipFetch } from '../../../src/encoder/inference/cuda/pip.ts';
import { documentSequence } from '../../../src/encoder/model/colbert-rules.ts';
import {
  type CudaPlaces,
  cudaProblem,
  nvidiaLibraries,
  providerLibraries,
  runtimeVersion,
} from '../../../src/encoder/inference/cuda/cuda-library.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { encodersOfTest } from '../../support/encoder/encoders.ts';
import { defaultModel, minilmModel, tinyModel } from '../../support/encoder/models.ts';

function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-cuda-test-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

interface Bench {
  readonly options: CudaInstallOptions;
  readonly places: CudaPlaces;
  /** Requirements that were fetched, in order. */
  readonly fetched: string[];
}

/** A runtime folder of a commit, and a package index whose provider is of the same or another commit. */
function workbench(changes: Partial<CudaInstallOptions> = {}, providerCommit = 'abc123'): Bench {
  const root = temporaryDirectory();
  const runtime = path.join(root, 'runtime');
  const places = { runtime, nvidia: path.join(runtime, 'nvidia') };
  mkdirSync(runtime);
  writeFileSync(path.join(runtime, 'libonnxruntime.so.1'), 'ORT Build Info: git-commit-id=abc123, ...');
  const fetched: string[] = [];
  const write = (target: string, file: string, content: string): void => {
    mkdirSync(path.join(target, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(target, file), content);
  };
  const fetch = (requirements: string, target: string): void => {
    fetched.push(requirements);
    if (requirements.startsWith('onnxruntime-gpu')) {
      write(target, 'onnxruntime/capi/libonnxruntime.so.1.30.0', `x git-commit-id=${providerCommit}, y`);
      for (const library of providerLibraries) write(target, `onnxruntime/capi/${library}`, library);
    } else {
      for (const library of nvidiaLibraries) write(target, `nvidia/cu13/lib/${library}`, library);
    }
  };
  const options: CudaInstallOptions = {
    host: { platform: 'linux', arch: 'x64', glibc: '2.36' },
    runtimeVersion: providerPackage.version,
    places,
    store: path.join(root, 'store'),
    systemLibraries: false,
    fetch,
    onProgress: () => undefined,
    ...changes,
  };
  return { options, places, fetched };
}

describe('installing CUDA', () => {
  it('is pinned to the runtime that is installed', () => {
    expect(providerPackage.version).toBe(runtimeVersion());
  });

  it('puts the provider beside the runtime and NVIDIA’s libraries into a folder there', () => {
    const { options, places, fetched } = workbench();
    installCuda(options);
    for (const library of providerLibraries)
      expect(readFileSync(path.join(places.runtime, library), 'utf8')).toBe(library);
    for (const library of nvidiaLibraries)
      expect(readFileSync(path.join(places.nvidia, library), 'utf8')).toBe(library);
    expect(fetched).toEqual([requirementsOf([providerPackage]), requirementsOf(nvidiaPackages)]);
    for (const line of fetched.join('').trim().split('\n'))
      expect(line).toMatch(/--hash=sha256:[0-9a-f]{64}$/);
  });

  it('fetches nothing a second time, and mends a folder that lost a file or holds a broken one', () => {
    const { options, places, fetched } = workbench();
    installCuda(options);
    rmSync(path.join(places.nvidia, 'libcublas.so.13'));
    const provider = path.join(places.runtime, 'libonnxruntime_providers_cuda.so');
    rmSync(provider);
    writeFileSync(provider, 'cut off');
    installCuda(options);
    expect(readFileSync(provider, 'utf8')).toBe('libonnxruntime_providers_cuda.so');
    expect(existsSync(path.join(places.nvidia, 'libcublas.so.13'))).toBe(true);
    expect(fetched).toHaveLength(2);
  });

  it('leaves NVIDIA’s libraries to the system when asked to', () => {
    const { options, places, fetched } = workbench({ systemLibraries: true });
    installCuda(options);
    expect(existsSync(places.nvidia)).toBe(false);
    expect(fetched).toHaveLength(1);
  });

  it('fetches again after a download that broke off', () => {
    const { options, places, fetched } = workbench();
    const broken = { ...options, fetch: failing };
    expect(() => installCuda(broken)).toThrow('the package index cannot be reached');
    expect(existsSync(path.join(places.runtime, 'libonnxruntime_providers_cuda.so'))).toBe(false);
    installCuda(options);
    expect(fetched).toHaveLength(2);
  });

  it.each([
    [{ platform: 'darwin', arch: 'arm64', glibc: undefined }, /linux-x64 only, not for darwin-arm64/],
    [{ platform: 'linux', arch: 'arm64', glibc: '2.36' }, /linux-x64 only, not for linux-arm64/],
    [{ platform: 'linux', arch: 'x64', glibc: '2.27' }, /glibc 2\.28 or later, here is 2\.27/],
    [{ platform: 'linux', arch: 'x64', glibc: undefined }, /here is another C library/],
  ])('refuses the host %o', (host, message) => {
    const { options, fetched } = workbench({ host });
    expect(() => installCuda(options)).toThrow(message);
    expect(fetched).toEqual([]);
  });

  it('refuses a runtime of another version, and a provider of another build', () => {
    expect(() => installCuda(workbench({ runtimeVersion: '1.29.0' }).options)).toThrow(
      /onnxruntime-node is 1\.29\.0, and this program knows the provider for 1\.30\.0/,
    );
    const { options, places } = workbench({}, 'def456');
    expect(() => installCuda(options)).toThrow('commit abc123, the provider from def456');
    expect(existsSync(path.join(places.runtime, 'libonnxruntime_providers_cuda.so'))).toBe(false);
  });

  it('says so when there is no Python', () => {
    const target = temporaryDirectory();
    const fetch = pipFetch(path.join(target, 'no-python'));
    expect(() => fetch(requirementsOf([providerPackage]), target)).toThrow(/a Python 3 with pip is needed/);
  });
});

function failing(_requirements: string, target: string): never {
  writeFileSync(path.join(target, 'half.so'), '');
  throw new CudaInstallError('the package index cannot be reached');
}

describe('a host without CUDA', () => {
  it('reads what is missing', () => {
    const { places } = workbench();
    expect(cudaProblem(places)).toMatch(/npm run cuda:install/);
  });

  it('serves from CUDA when that is asked for, or ends at start and says why', async () => {
    const problem = cudaProblem();
    const started = encodersOfTest({ provider: 'cuda', modelDirectories: [tinyModel] });
    if (problem === undefined) expect((await started).logs.join('\n')).toContain('"provider":"cuda"');
    else await expect(started).rejects.toThrow(problem);
  });

  it('serves from the CPU with `auto`, and logs why', async () => {
    const options = { provider: 'auto', logLevel: 'debug', modelDirectories: [tinyModel] } as const;
    const { logs } = await encodersOfTest(options);
    if (cudaProblem() === undefined) expect(logs.join('\n')).toContain('"provider":"cuda"');
    else expect(logs.join('\n')).toMatch(/"reason":"cuda: .*"CUDA did not load; using the CPU"/);
  });
});

describe.each([defaultModel, minilmModel])('the f16 graph of a shipped model: %#', (directory) => {
  it('runs on CUDA, and agrees with the int8 graph of the CPU on golden values and int8 rows', async () => {
    const model = await loadModel(directory);
    const files = [model.session.graphs.cpu.file, model.session.graphs.cuda.file];
    expect(files.map((file) => path.basename(file))).toEqual(['model.onnx', 'model.f16.onnx']);
    const sessions = await Promise.all(
      files.map(async (file) =>
        InferenceSession.create(file, { executionProviders: ['cpu'], intraOpNumThreads: 1 }),
      ),
    );
    const text = 'Late interaction scores a document by the best match of every query token.';
    const texts = [text, `${text} ${text}`].map(
      (each) => documentSequence(model.rules, model.tokenizer.encode(each)).ids,
    );
    const [int8, f16] = (await Promise.all(sessions.map(async (each) => each.run(feeds(texts))))) as [
      Record<string, Tensor>,
      Record<string, Tensor>,
    ];
    const rows = model.rowBits < 8 ? ['output'] : ['output', 'document_int8', 'document_scale'];
    for (const name of [...rows, 'token_weight'])
      expect([f16[name]?.type, f16[name]?.dims]).toEqual([int8[name]?.type, int8[name]?.dims]);
    expect(f16['token_weight']?.data).toEqual(int8['token_weight']?.data);
    const [, session] = sessions;
    const goldenTolerance = model.session.graphs.cuda.goldenTolerance!;
    for (const { input_ids: ids, rows: expected } of model.golden as readonly Golden[]) {
      const data = Float32Array.from(
        (await session!.run(feeds([Int32Array.from(ids)])))['output']!.data as Float32Array,
      );
      // Golden values are those of rows as an encoder gives them.
      if (model.rowBits < 8) new Rotation(model.dim).apply(data);
      for (const { row, values } of expected) {
        for (const [d, value] of values.entries())
          expect(Math.abs(data[row * model.dim + d]! - value)).toBeLessThan(goldenTolerance);
      }
    }
    const longest = Math.max(...texts.map(({ length }) => length));
    for (const [row, { length }] of texts.entries()) {
      for (let token = 0; token < length; token++) {
        const at = (row * longest + token) * model.dim;
        const rowOf = (outputs: Record<string, Tensor>, name: string): number[] =>
          Array.from(outputs[name]!.data.slice(at, at + model.dim) as Float32Array);
        expect(cosine(rowOf(f16, 'output'), rowOf(int8, 'output'))).toBeGreaterThan(0.99);
        if (model.rowBits === 8)
          expect(cosine(rowOf(f16, 'document_int8'), rowOf(int8, 'document_int8'))).toBeGreaterThan(0.985);
      }
    }
  });
});

interface Golden {
  readonly input_ids: readonly number[];
  readonly rows: readonly { readonly row: number; readonly values: readonly number[] }[];
}

/** Padded int64 inputs. */
function feeds(texts: readonly Int32Array[]): Record<string, Tensor> {
  const longest = Math.max(...texts.map(({ length }) => length));
  const shape = [texts.length, longest];
  const ids = new BigInt64Array(texts.length * longest);
  const mask = new BigInt64Array(ids.length);
  for (const [row, text] of texts.entries()) {
    ids.set(BigInt64Array.from(text, BigInt), row * longest);
    mask.fill(1n, row * longest, row * longest + text.length);
  }
  return {
    input_ids: new Tensor('int64', ids, shape),
    attention_mask: new Tensor('int64', mask, shape),
  };
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]): number =>
    x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
