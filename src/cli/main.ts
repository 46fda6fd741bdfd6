#!/usr/bin/env node
/** The command line's entry: catches what ends the service before anything else is read, and hands over the environment. */
import { catchEndSignals } from '../end-signals.ts';

const args = process.argv.slice(2);
// Other commands end by a signal as every program does, unless they say otherwise.
const asked = args[0] === 'serve' ? catchEndSignals() : undefined;
const { runCommandLine } = await import('./run.ts');
await runCommandLine({ args, environment: process.env, asked });
