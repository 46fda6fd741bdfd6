/** Makes a user's project that has the TypeScript client in the form in which it is published. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '../../clients/tools/install.ts';
import { packTypeScript } from '../../clients/tools/pack.ts';
import { repositoryRoot } from './running/launch.ts';

/** Makes `project` in a directory. */
export async function typeScriptProject(directory: string): Promise<string> {
  const project = path.join(directory, 'project');
  const installed = path.join(project, 'node_modules/@maxsimd/client');
  mkdirSync(installed, { recursive: true });
  const tarball = path.join(directory, await packTypeScript(directory));
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed], project);
  symlinkSync(path.join(repositoryRoot, 'node_modules/undici'), path.join(project, 'node_modules/undici'));
  writeFileSync(path.join(project, 'package.json'), '{"type":"module"}');
  return project;
}
