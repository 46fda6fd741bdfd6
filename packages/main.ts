/**
 * Entry of `npm run package`: makes all packages that this platform can make, in `build/release`. They are those of the service, of
 * the clients for npm and PyPI, bills of materials, and the checksums of all files. Each is installed on trial.
 * `npm run package -- service` makes the packages of the service alone, without a trial, as the image needs them.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { missingPython } from '../clients/tools/install.ts';
import { checkout, platform, root } from './manifests.ts';
import { packAll, packService } from './pack.ts';
import { tryNpmPackages, tryWheel } from './trial.ts';

const directory = path.join(root, 'build', 'release');
const inDirectory = (name: string): string => path.join(directory, name);

async function makeAll(): Promise<void> {
  const noPython = missingPython();
  if (noPython !== undefined) {
    throw new Error(
      `the Python client needs python3 >= 3.10 and PyPI: ${noPython}. To make the packages of the service alone: npm run package -- service`,
    );
  }
  const { service, client, wheel } = await packAll(directory);
  // The parts for frameworks are of use beside a framework alone.
  const bill = `maxsimd-${checkout.version}-${platform}.cdx.json`;
  await tryNpmPackages([...service, client].map(inDirectory), inDirectory(bill));
  const pythonBill = wheel.replace(/-py3-none-any\.whl$/, '.python.cdx.json');
  await tryWheel(inDirectory(wheel), inDirectory(pythonBill));
}

function writeChecksums(): void {
  const lines = readdirSync(directory)
    .toSorted()
    .map((name) => {
      const hash = createHash('sha256').update(readFileSync(inDirectory(name)));
      return `${hash.digest('hex')}  ${name}\n`;
    });
  writeFileSync(inDirectory('SHA256SUMS'), lines.join(''));
  process.stdout.write(`in ${directory}:\n${lines.join('')}`);
}

try {
  const [part, ...more] = process.argv.slice(2);
  if (more.length > 0 || (part !== undefined && part !== 'service'))
    throw new Error('the only argument is: service');
  await (part === 'service' ? packService(directory) : makeAll());
  writeChecksums();
} catch (error) {
  process.stderr.write(`no packages: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
