/**
 * The packages that `cuda:install` fetches from the Python package index, with their checksums. onnxruntime-node ships no CUDA
 * provider. The wheel of the same version of `onnxruntime-gpu` is built from the same commit and holds one. It is linked against
 * CUDA 13 (`readelf -d`: libcublas.so.13, libcublasLt.so.13, libcudart.so.13, libcurand.so.10, libcuda.so.1), and loads cuDNN 9
 * when a graph needs it. NVIDIA's libraries are those of 13.0, which run on the oldest driver of CUDA 13 (580).
 */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  readonly megabytes: number;
}

export const providerPackage: PinnedPackage = {
  name: 'onnxruntime-gpu',
  version: '1.30.0',
  sha256: '6acc0f4b3d5ac5f2984432faa59dd8fcce6775f8b43a7140afa0f322c7a703b1',
  megabytes: 247,
};

export const nvidiaPackages: readonly PinnedPackage[] = [
  {
    name: 'nvidia-cuda-runtime',
    version: '13.0.48',
    sha256: '5b54d12087a1abff81a4cbfa6556876e3afea1fc60da2e0816da374619810c89',
    megabytes: 2,
  },
  {
    name: 'nvidia-cublas',
    version: '13.0.0.19',
    sha256: 'f6723af2e8e2600a11dc384037d90d9bf93070e346c24ef2e8f9001658c99896',
    megabytes: 419,
  },
  {
    name: 'nvidia-curand',
    version: '10.4.0.35',
    sha256: '1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc',
    megabytes: 60,
  },
  {
    name: 'nvidia-cuda-nvrtc',
    version: '13.0.48',
    sha256: '87e13d186905a35e7c04ad553a2abded0fba22f93b43d02e5da6f6cf73fb4d0a',
    megabytes: 90,
  },
  {
    name: 'nvidia-cudnn-cu13',
    version: '9.13.0.50',
    sha256: '2150b4850725d30653ec3e365f0732e3e2e3eb8633cf3bd2d3117628dea8b4f9',
    megabytes: 349,
  },
];

/** A requirements file with the checksums that pip compares each download with. */
export function requirementsOf(packages: readonly PinnedPackage[]): string {
  return packages
    .map(({ name, version, sha256 }) => `${name}==${version} --hash=sha256:${sha256}\n`)
    .join('');
}
