/** Commands of documents, as they stand there. Pages are named by their path in docs/. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { entryPoint, repositoryRoot } from '../../support/running/launch.ts';

export const documentText = (page: string): Promise<string> =>
  readFile(path.join(repositoryRoot, 'docs', page), 'utf8');

/** All blocks of a page that are marked as commands. */
export async function documentCommands(page: string): Promise<string> {
  const blocks = (await documentText(page)).matchAll(/^```sh\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, block = '']) => block).join('');
}

/** Runs commands in a folder with the command line of this repository, and returns what they print. */
export async function runCommands(
  commands: string,
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const script = commands.replaceAll(
    /npm run maxsimd --|npx maxsimd/g,
    `"${process.execPath}" "${entryPoint}"`,
  );
  if (script === commands) throw new Error('there is no command');
  const env = { ...process.env, ...environment };
  return (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd, env })).stdout;
}
