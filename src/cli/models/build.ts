/**
 * `maxsimd models build`: makes a model whose graph is not in the repository. The recipe (`models/build.sh`) runs in a checkout
 * alone; an installation gets the same files from a package.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { furtherModels, packageOfModel, programVersion } from '../../process/installation.ts';
import { CommandFailure, inputError } from '../failure.ts';
import type { CommandResult } from '../output.ts';

/**
 * Runs the script with a name of a recipe, or says which package has the model if there is no script. The script's output goes to
 * standard error, because standard output is for the result.
 */
export async function buildModel(
  given: string,
  { script, signal }: { readonly script: string | undefined; readonly signal: AbortSignal },
): Promise<CommandResult> {
  if (script === undefined) throw inputError(withoutScript(given));
  const child = spawn(script, [given], { stdio: ['ignore', process.stderr, process.stderr], signal });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the arguments of the event
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) {
    throw new CommandFailure(
      'build_failed',
      `${path.relative(process.cwd(), script)} ${given} ended with exit code ${code ?? 'none'}`,
    );
  }
  return {
    document: { model: given, directory: path.dirname(script) },
    text: `${given} is built. \`maxsimd models list\` shows it.`,
  };
}

/** Why a model is not built here, and what to do instead. */
function withoutScript(given: string): string {
  const name = given.split('/')[0]!;
  const found = furtherModels.find((model) => model === name || model === `${name}-maxsim`);
  const advice =
    found === undefined
      ? `packages exist for ${furtherModels.join(', ')}`
      : `npm install ${packageOfModel(found)}@${programVersion()}`;
  return `models are built in a checkout only: ${advice}`;
}
