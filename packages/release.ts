/**
 * Entry of `npm run release`. It checks the changelog, packs this platform's packages and the clients into `build/release`, and
 * installs them into empty folders as a user would. Then it adds bills of materials of the installed packages (CycloneDX, by npm
 * and by cyclonedx-py) and the checksums of all files.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { pythonEnvironment, run } from '../clients/tools/install.ts';
import { packFrameworks, packPython, packTypeScript } from '../clients/tools/pack.ts';
import { checkout, platform, root } from './manifests.ts';
import { pack } from './pack.ts';

/** The installation must not take more. */
const installedBytesMax = 350e6;

const release = path.join(root, 'build', 'release');
const installation = path.join(root, 'build', 'maxsimd-installation');

const billSchema = z.looseObject({
  components: z.array(
    z.looseObject({ externalReferences: z.array(z.looseObject({ type: z.string() })).optional() }),
  ),
});

checkChangelog();
const packages = await pack(release);
const client = await packTypeScript(release);
packages.push(client);
// Not installed: they are of use beside a framework alone.
await packFrameworks(release, client);
const { wheel } = await packPython(release);
installPackages();
checkSize();
writeBill();
await installPython();
writeChecksums();

/** Checks that the first section is that of this version, and that it has entries. */
function checkChangelog(): void {
  const [, section = ''] = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m);
  const [heading = '', ...lines] = section.split('\n');
  if (heading !== checkout.version || !lines.some((line) => line.startsWith('- '))) {
    throw new Error(
      `CHANGELOG.md must begin with what is new in ${checkout.version}; it begins with ${heading}`,
    );
  }
}

function installPackages(): void {
  rmSync(installation, { recursive: true, force: true });
  mkdirSync(installation, { recursive: true });
  const manifest = { name: 'maxsimd-installation', version: checkout.version, private: true };
  writeFileSync(path.join(installation, 'package.json'), JSON.stringify(manifest));
  const files = packages.map((name) => path.join(release, name));
  execFileSync(
    'npm',
    ['install', '--ignore-scripts=false', '--no-audit', '--no-fund', '--loglevel=error', ...files],
    { cwd: installation, stdio: ['ignore', 2, 2] },
  );
  const program =
    "const { Maxsimd } = await import('@maxsimd/client'); new Maxsimd({ url: 'http://x', apiKey: 'y' });";
  execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: installation,
    stdio: 'inherit',
  });
}

/** Installs the wheel into an environment of its own, with the dependencies that a user would get today. */
async function installPython(): Promise<void> {
  const environment = path.join(root, 'build', 'maxsimd-client-installation');
  const python = path.join(environment, 'bin', 'python');
  rmSync(environment, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', environment], root);
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await run(python, [...install, path.join(release, wheel)], root);
  await run(python, ['-c', "from maxsimd import Maxsimd; Maxsimd('http://x', 'y').close()"], root);
  // pip belongs to the environment, not to the client.
  await run(python, ['-m', 'pip', 'uninstall', '--quiet', '--yes', 'setuptools', 'pip'], root);
  const requirements = path.join(import.meta.dirname, 'requirements.txt');
  const tool = path.join(await pythonEnvironment('python-bill', requirements), 'cyclonedx-py');
  const project = ['--pyproject', path.join(root, 'clients/python/pyproject.toml'), '--mc-type', 'library'];
  const bill = await run(tool, ['environment', ...project, '--output-reproducible', python], root);
  writeFileSync(
    path.join(release, wheel.replace(/-py3-none-any\.whl$/, '.python.cdx.json')),
    withoutAddresses(bill),
  );
}

function checkSize(): void {
  const files = readdirSync(installation, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const bytes = files.reduce(
    (sum, { parentPath, name }) => sum + statSync(path.join(parentPath, name)).blocks * 512,
    0,
  );
  process.stdout.write(`installed: ${(bytes / 1e6).toFixed(0)} MB on disk\n`);
  if (bytes > installedBytesMax) throw new Error(`more than ${installedBytesMax / 1e6} MB are installed`);
}

function writeBill(): void {
  const output = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application'], {
    cwd: installation,
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  const file = path.join(release, `maxsimd-${checkout.version}-${platform}.cdx.json`);
  writeFileSync(file, withoutAddresses(output));
}

/** Removes the addresses from which this machine got the packages. */
function withoutAddresses(text: string): string {
  const bill = billSchema.parse(JSON.parse(text));
  for (const component of bill.components) {
    component.externalReferences = component.externalReferences?.filter(
      ({ type }) => type !== 'distribution',
    );
  }
  process.stdout.write(`bill of materials: ${bill.components.length} packages\n`);
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}

function writeChecksums(): void {
  const lines = readdirSync(release)
    .toSorted()
    .map((name) => {
      const hash = createHash('sha256').update(readFileSync(path.join(release, name)));
      return `${hash.digest('hex')}  ${name}\n`;
    });
  writeFileSync(path.join(release, 'SHA256SUMS'), lines.join(''));
  process.stdout.write(lines.join(''));
}
