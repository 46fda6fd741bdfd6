#!/usr/bin/env node
/** Entry of the command line. It catches signals for `serve` before it loads anything else, and passes the environment on. */
import { catchEndSignals } from '../process/end-signals.ts';

const args = process.argv.slice(2);
// Other commands end by a signal as usual, unless they handle it themselves.
const asked = args[0] === 'serve' ? catchEndSignals() : undefined;
const { runCommandLine } = await import('./run.ts');
await runCommandLine({ args, environment: process.env, asked });
