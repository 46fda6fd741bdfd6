/** Runs the command line with other constants than its own. The first argument has them as JSON. No variable sets them. */
import type { Constants } from '../../src/app/config.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { catchEndSignals } from '../../src/process/end-signals.ts';

const [constants = '{}', ...args] = process.argv.slice(2);
await runCommandLine({
  args,
  environment: process.env,
  asked: catchEndSignals(),
  constants: JSON.parse(constants) as Partial<Constants>,
});
