/**
 * Installs Debian packages that a test or a local cluster needs, as root or by a `sudo` without a password. Fetching them is bounded
 * in time. Installing is not, because an interrupted dpkg leaves packages half installed.
 */
import { spawnSync } from 'node:child_process';

/** The bound of each step that fetches. */
const fetchMsMax = 120_000;
const options = [
  '--yes',
  '--quiet',
  '--no-install-recommends',
  '-oAcquire::Retries=1',
  // If lists cannot be fetched, that must be the error, not that there is no such package.
  '-oAPT::Update::Error-Mode=any',
  '-oAcquire::http::Timeout=20',
  '-oDPkg::Lock::Timeout=60',
];

/**
 * Installs tools that are missing, each with its package. Returns why that failed; `undefined` when all tools are there.
 * `versionOptions`: the options of tools that do not print their version with `--version`.
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
    // The lists of a new machine are empty. Those of an old one name packages that are gone.
    const stale = fetch('update');
    const failure = fetch('install', '--download-only', ...packages);
    if (failure !== undefined) return stale ?? failure;
  }
  return aptGet(isRoot, ['install', '--no-download', ...packages], 0);
}

/** Returns what went wrong, or undefined. A timeout of 0 ms means none. */
function aptGet(isRoot: boolean, args: readonly string[], timeout: number): string | undefined {
  const { status, error, stderr } = spawnSync(
    isRoot ? 'env' : 'sudo',
    [...(isRoot ? [] : ['-n', 'env']), 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...options, ...args],
    { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'], timeout },
  );
  if (status === 0) return undefined;
  return `apt-get ${args[0]}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`;
}
