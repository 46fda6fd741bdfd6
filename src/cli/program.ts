/**
 * The command line. Each file of `commands/` defines the arguments, options and help of a command group. A command loads
 * the module with its work only when it runs, so a search does not wait for the server's packages.
 */
import { styleText } from 'node:util';
import { Command, CommanderError } from 'commander';
import { addAudit } from './commands/audit.ts';
import { addBackup, addRestore } from './commands/backup.ts';
import { addCluster } from './commands/cluster.ts';
import { addCompletion } from './commands/completion.ts';
import { addDocument, addFacets } from './commands/documents.ts';
import { addEval } from './commands/eval.ts';
import type { ProgramEnvironment } from './commands/environment.ts';
import { addImport } from './commands/import.ts';
import { addIndex } from './commands/index.ts';
import { addKey } from './commands/key.ts';
import { addMcp } from './commands/mcp.ts';
import { addModels } from './commands/models.ts';
import { addSearch } from './commands/search.ts';
import { addTenant } from './commands/tenant.ts';
import { addUsage } from './commands/usage.ts';

/** Rejects with a `CommanderError` on bad usage, and also after help was printed. */
export async function runProgram(args: readonly string[], environment: ProgramEnvironment): Promise<void> {
  const program = new Command('maxsimd')
    .description('Multi-tenant, multi-vector (late interaction) retrieval service.')
    .version(environment.version)
    // `--version` after a command belongs to that command: `models add --version 2`.
    .enablePositionalOptions()
    .helpCommand(true)
    .exitOverride()
    // `run.ts` reports usage errors. Only the help of an incomplete command is written here. It goes to standard output,
    // because asking for help is no error.
    .configureOutput({ outputError: () => {}, writeErr: (text) => process.stdout.write(text) })
    .configureHelp({
      styleTitle: (title) => styleText('bold', title),
      styleCommandText: (text) => styleText('cyan', text),
      styleSubcommandText: (text) => styleText('cyan', text),
      styleOptionText: (text) => styleText('cyan', text),
    })
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 wrong command line or configuration.\n' +
        'With --json, standard output has exactly one JSON document. A failure is {"error":{"code","message"}}.\n' +
        'The service and the commands that work on this machine read MAXSIMD_* variables (docs/reference/configuration.md).',
    );
  addServe(program, environment);
  addTenant(program, environment);
  addKey(program, environment);
  addAudit(program, environment);
  addIndex(program, environment);
  addCluster(program, environment);
  addBackup(program, environment);
  addRestore(program, environment);
  addModels(program, environment);
  addImport(program, environment);
  addSearch(program, environment);
  addFacets(program, environment);
  addDocument(program, environment);
  addEval(program, environment);
  addUsage(program, environment);
  addMcp(program, environment);
  addCompletion(program, environment);
  await program.parseAsync([...args], { from: 'user' });
}

/** The words of a usage error; `undefined` when nothing is wrong (help was printed). */
export function usageProblem(error: CommanderError): string | undefined {
  if (error.exitCode === 0 || error.code === 'commander.help') return undefined;
  const words = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  const [, option, given, right] = valueProblem.exec(words) ?? [];
  return right === undefined ? words : `${option} ${right}, got ${JSON.stringify(given)}`;
}

/** The message of commander for a value that a parser of `commands/options.ts` refuses. The parser's own words end it. */
const valueProblem = /^option '(?:-\w, )?(--[\w-]+)[^']*' argument '(.*)' is invalid\. (must .*)$/;

export { CommanderError };

function addServe(program: Command, environment: ProgramEnvironment): void {
  program
    .command('serve')
    .description('run the service until SIGTERM')
    .action(async () => environment.serve(environment.config()));
}
