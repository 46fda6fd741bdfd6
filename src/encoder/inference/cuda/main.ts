/** Entry of `npm run cuda:install`: installs the provider, then reports whether it loads on this machine. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { cudaPlaces, loadProblem, nvidiaLibraries, nvidiaProblem, runtimeVersion } from './cuda-library.ts';
import { CudaInstallError, type Host, installCuda } from './install.ts';
import { pipFetch } from './pip.ts';

const usage = `npm run cuda:install -- [--system-libraries] [--python python3]

  --system-libraries   take CUDA 13 and cuDNN 9 from the system instead of fetching them (0.9 GB)
  --python COMMAND     a Python 3 with pip, which does the downloads (and knows mirrors and proxies)
`;

try {
  const { values } = parseArgs({
    options: {
      'system-libraries': { type: 'boolean', default: false },
      python: { type: 'string', default: 'python3' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) process.stdout.write(usage);
  else install(values['system-libraries'], values.python);
} catch (error) {
  const expected =
    error instanceof CudaInstallError ||
    (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS') === true;
  if (!expected) throw error;
  process.stderr.write(`cuda:install: ${(error as Error).message}\n`);
  process.exitCode = 1;
}

function install(systemLibraries: boolean, python: string): void {
  const places = cudaPlaces();
  installCuda({
    host: host(),
    runtimeVersion: runtimeVersion(),
    places,
    store: path.resolve(import.meta.dirname, '../../../../.cuda'),
    systemLibraries,
    fetch: pipFetch(python),
    onProgress: say,
  });
  if (systemLibraries) {
    const missing = nvidiaLibraries.filter((library) => loadProblem(library) !== undefined);
    if (missing.length > 0) {
      throw new CudaInstallError(
        `the system lacks ${missing.join(', ')}: install CUDA 13 and cuDNN 9 from NVIDIA's repository for your ` +
          'distribution, or run this without --system-libraries',
      );
    }
  }
  const problem =
    nvidiaProblem(places) ?? loadProblem(path.join(places.runtime, 'libonnxruntime_providers_shared.so'));
  if (problem !== undefined) throw new CudaInstallError(problem);
  // Everything else that the provider is linked against is there, so only the driver can be missing.
  const driver = loadProblem('libcuda.so.1');
  if (driver !== undefined) {
    say(
      `everything but the driver is in place (${driver}): install the NVIDIA driver, 580 or later, or give ` +
        'the container its GPU; it comes with no package',
    );
    return;
  }
  const { status, stdout } = spawnSync(
    'nvidia-smi',
    ['--query-gpu=index,name,driver_version', '--format=csv,noheader'],
    { encoding: 'utf8' },
  );
  say(status === 0 ? `the driver sees:\n${stdout.trimEnd()}` : 'the driver is in place; nvidia-smi is not');
  say('start with MAXSIMD_PROVIDER=cuda');
}

function host(): Host {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return { platform: process.platform, arch: process.arch, glibc: header.glibcVersionRuntime };
}

function say(line: string): void {
  process.stdout.write(`cuda:install: ${line}\n`);
}
