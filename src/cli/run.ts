/** Runs the command line and sets the exit code. */
import { parseConfig, serviceLinksIn, type Config, type Constants } from '../app/config.ts';
import { catchEndSignals } from '../process/end-signals.ts';
import { programVersion } from '../process/installation.ts';
import { forbidCoreDumps } from '../process/process-tuning.ts';
import type { ProgramEnvironment } from './commands/environment.ts';
import { CommandFailure, exitCodes, Interruption, type ExitCode } from './failure.ts';
import type { CommandResult } from './output.ts';
import { CommanderError, runProgram, usageProblem } from './program.ts';
import { reportFailure, reportResult, type Streams } from './report.ts';

export interface CommandLine {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted when the process is asked to end. Only `serve` has it. */
  readonly asked: AbortSignal | undefined;
  /** Constants that tests change. */
  readonly constants?: Partial<Constants>;
}

export async function runCommandLine({ args, environment, asked, constants }: CommandLine): Promise<void> {
  forbidCoreDumps();
  // A reader may close the pipe early (`maxsimd tenant list | head -1`). This is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    throw error;
  });
  const given = {
    ...environmentOf(environment, constants),
    stdin: process.stdin,
    stderr: process.stderr,
    interruption: () => {
      const abort = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM'] as const) {
        process.once(name, () => abort.abort(new Interruption(name)));
      }
      return abort.signal;
    },
    serve: async (config: Config) => {
      const { serve } = await import('../app/serve.ts');
      await serve(config, { asked: asked ?? catchEndSignals(), ignored: serviceLinksIn(environment) });
    },
  };
  process.exitCode = (await runAndReport(args, given, process)) ?? process.exitCode;
}

/** The part of a command's environment that comes from variables. */
export function environmentOf(
  environment: CommandLine['environment'],
  constants?: CommandLine['constants'],
): Omit<ProgramEnvironment, 'stdin' | 'stderr' | 'interruption' | 'serve' | 'report'> {
  return {
    version: programVersion(),
    config: () => parseConfig(environment, constants),
    url: environment['MAXSIMD_URL'] || undefined,
    apiKey: environment['MAXSIMD_API_KEY'] || undefined,
    adminUrl: environment['MAXSIMD_ADMIN_URL'] || undefined,
    adminKey: environment['MAXSIMD_ADMIN_KEY'] || undefined,
    stateHome: environment['XDG_STATE_HOME'] || undefined,
  };
}

/** Undefined where the service runs: its end decides. */
export async function runAndReport(
  args: readonly string[],
  given: Omit<ProgramEnvironment, 'report'>,
  streams: Streams,
): Promise<ExitCode | undefined> {
  const json = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length).includes('--json');
  let exitCode: ExitCode | undefined;
  try {
    const report = (result: CommandResult) => void (exitCode = reportResult(result, json, streams));
    await runProgram(args, { ...given, report });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(error, json, streams);
    const problem = usageProblem(error);
    if (problem === undefined) return exitCodes.ok;
    return reportFailure(new CommandFailure('usage_error', `${problem} (see --help)`), json, streams);
  }
}
