/** The Python client, built as a wheel and installed beside pinned packages. */
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment, run } from '../../clients/tools/install.ts';
import { repositoryRoot } from '../support/running/launch.ts';

export const pythonSource = path.join(repositoryRoot, 'clients/python');

/** The interpreter of the environment `name`; the wheel is left in `build/clients/NAME-wheel`. */
export async function installedPython(name: string, requirements: string): Promise<string> {
  const python = path.join(await pythonEnvironment(name, path.join(pythonSource, requirements)), 'python');
  const wheels = path.join(repositoryRoot, `build/clients/${name}-wheel`);
  rmSync(wheels, { recursive: true, force: true });
  const options = ['--quiet', '--no-deps', '--no-build-isolation', '--disable-pip-version-check'];
  await run(python, ['-m', 'pip', 'wheel', ...options, '--wheel-dir', wheels, pythonSource], repositoryRoot);
  const [wheel = ''] = readdirSync(wheels);
  const install = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--force-reinstall', '--no-index'];
  await run(python, [...install, path.join(wheels, wheel)], repositoryRoot);
  return python;
}
