/**
 * Installs packages into empty folders as a user would, and sees that they load. Writes bills of materials of what was installed
 * (CycloneDX, by npm and by cyclonedx-py) beside the packages.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { pythonEnvironment, run } from '../clients/tools/install.ts';
import { checkout, root } from './manifests.ts';

const installation = path.join(root, 'build', 'maxsimd-installation');

const billSchema = z.looseObject({
  components: z.array(
    z.looseObject({ externalReferences: z.array(z.looseObject({ type: z.string() })).optional() }),
  ),
});

/** Tarballs of the service and of the client. */
export async function tryNpmPackages(files: readonly string[], billFile: string): Promise<void> {
  rmSync(installation, { recursive: true, force: true });
  mkdirSync(installation, { recursive: true });
  const manifest = { name: 'maxsimd-installation', version: checkout.version, private: true };
  writeFileSync(path.join(installation, 'package.json'), JSON.stringify(manifest));
  await run(
    'npm',
    ['install', '--ignore-scripts=false', '--no-audit', '--no-fund', '--loglevel=error', ...files],
    installation,
  );
  const program =
    "const { Maxsimd } = await import('@maxsimd/client'); new Maxsimd({ url: 'http://x', apiKey: 'y' });";
  await run(process.execPath, ['--input-type=module', '--eval', program], installation);
  const bill = await run('npm', ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application'], installation);
  writeFileSync(billFile, withoutAddresses(bill));
}

/** Installs the wheel into an environment of its own, with the dependencies that a user would get today. */
export async function tryWheel(wheel: string, billFile: string): Promise<void> {
  const environment = path.join(root, 'build', 'maxsimd-client-installation');
  const python = path.join(environment, 'bin', 'python');
  rmSync(environment, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', environment], root);
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await run(python, [...install, wheel], root);
  await run(python, ['-c', "from maxsimd import Maxsimd; Maxsimd('http://x', 'y').close()"], root);
  // pip belongs to the environment, not to the client.
  await run(python, ['-m', 'pip', 'uninstall', '--quiet', '--yes', 'setuptools', 'pip'], root);
  const requirements = path.join(import.meta.dirname, 'requirements.txt');
  const tool = path.join(await pythonEnvironment('python-bill', requirements), 'cyclonedx-py');
  const project = ['--pyproject', path.join(root, 'clients/python/pyproject.toml'), '--mc-type', 'library'];
  const bill = await run(tool, ['environment', ...project, '--output-reproducible', python], root);
  writeFileSync(billFile, withoutAddresses(bill));
}

/** Removes the addresses from which this machine got the packages. */
function withoutAddresses(text: string): string {
  const bill = billSchema.parse(JSON.parse(text));
  for (const component of bill.components) {
    component.externalReferences = component.externalReferences?.filter(
      ({ type }) => type !== 'distribution',
    );
  }
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}
