/**
 * Debian packages that a test or a local cluster needs and a fresh machine lacks, installed as root or by a `sudo` that asks nothing.
 * Fetching them is bounded in time; installing what has been fetched is not, as cutting it short would leave dpkg
 * half-way.
 */
import { spawnSync } from 'node:child_process';

/** Bounds each step that fetches. */
const fetchMsMax = 120_000;
const options = [
  '--yes',
  '--quiet',
  '--no-install-recommends',
  '-oAcquire::Retries=1',
  // Lists that cannot be fetched are an error, or the reason given would be that there is no such package.
  '-oAPT::Update::Error-Mode=any',
  '-oAcquire::http::Timeout=20',
  '-oDPkg::Lock::Timeout=60',
];

/**
 * Why the tools, each with its package, are not there; `undefined` = they are, installed where they were missing.
 * `versionOptions`: of tools that print their version otherwise than by `--version`.
 */
export function installMissingTools(
  packageOf: Readonly<Record<string, string>>,
  versionOptions: Readonly<Record<string, string>> = {},
): string | undefined {
  const missing = Object.keys(packageOf).filter(
    (tool) => spawnSync(tool, [versionOptions[tool] ?? '--version']).status !== 0,
  );
  if (missing.length === 0) return undefined;
  return install(missing.map((tool) => packageOf[tool] ?? tool));
}

function install(packages: readonly string[]): string | undefined {
  if (spawnSync('apt-get', ['--version']).status !== 0) return 'there is no apt-get';
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && spawnSync('sudo', ['-n', 'true']).status !== 0) return 'neither root nor sudo';
  const fetch = (...args: readonly string[]) => aptGet(isRoot, args, fetchMsMax);
  if (fetch('install', '--download-only', ...packages) !== undefined) {
    // The lists of a fresh machine are empty, those of an old one name packages that are gone.
    const stale = fetch('update');
    const failure = fetch('install', '--download-only', ...packages);
    if (failure !== undefined) return stale ?? failure;
  }
  return aptGet(isRoot, ['install', '--no-download', ...packages], 0);
}

/** What went wrong; a timeout of 0 ms is none. */
function aptGet(isRoot: boolean, args: readonly string[], timeout: number): string | undefined {
  const { status, error, stderr } = spawnSync(
    isRoot ? 'env' : 'sudo',
    [...(isRoot ? [] : ['-n', 'env']), 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...options, ...args],
    { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'], timeout },
  );
  if (status === 0) return undefined;
  return `apt-get ${args[0]}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`;
}
