/** Runs the command line and sets the exit code. */
import { parseConfig, serviceLinksIn, type Constants } from '../app/config.ts';
import { catchEndSignals } from '../end-signals.ts';
import { programVersion } from '../installation.ts';
import { CommandFailure, exitCodes, Interruption } from './failure.ts';
import { CommanderError, runProgram, usageProblem } from './program.ts';
import { reportFailure, reportResult } from './report.ts';

export interface CommandLine {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted when the process is asked to end. Only `serve` has it. */
  readonly asked: AbortSignal | undefined;
  /** Those that tests change. */
  readonly constants?: Partial<Constants>;
}

export async function runCommandLine({ args, environment, asked, constants }: CommandLine): Promise<void> {
  const json = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length).includes('--json');

  // A reader may close the pipe early (`maxsimd tenant list | head -1`). This is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    throw error;
  });

  try {
    await runProgram(args, {
      version: programVersion(),
      config: () => parseConfig(environment, constants),
      url: environment['MAXSIMD_URL'] || undefined,
      apiKey: environment['MAXSIMD_API_KEY'] || undefined,
      adminUrl: environment['MAXSIMD_ADMIN_URL'] || undefined,
      adminKey: environment['MAXSIMD_ADMIN_KEY'] || undefined,
      stateHome: environment['XDG_STATE_HOME'] || undefined,
      stdin: process.stdin,
      stderr: process.stderr,
      interruption: () => {
        const abort = new AbortController();
        for (const name of ['SIGINT', 'SIGTERM'] as const) {
          process.once(name, () => abort.abort(new Interruption(name)));
        }
        return abort.signal;
      },
      serve: async (config) => {
        const { serve } = await import('../app/serve.ts');
        await serve(config, { asked: asked ?? catchEndSignals(), ignored: serviceLinksIn(environment) });
      },
      report: (result) => {
        process.exitCode = reportResult(result, json, process);
      },
    });
  } catch (error) {
    const problem = error instanceof CommanderError ? usageProblem(error) : undefined;
    if (problem !== undefined) {
      process.exitCode = reportFailure(
        new CommandFailure('usage_error', `${problem} (see --help)`),
        json,
        process,
      );
    } else if (error instanceof CommanderError) {
      process.exitCode = exitCodes.ok;
    } else {
      process.exitCode = reportFailure(error, json, process);
    }
  }
}
