/**
 * Connects a benchmark to the command line: its options with their help, its progress, and its report as a table and as JSON.
 * The types of its options follow from its settings.
 */
import { writeFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';

/** An option, `--warm-up <n>` for the key `warmUp`; one without a value is a switch. */
export interface Setting<Value> {
  readonly help: string;
  /** The placeholder of the value in the help; none for a switch. */
  readonly takes?: string;
  /** The default, as a user would write it. An option without it may be `undefined`. A switch without it turns something off (`--no-peers`). */
  readonly otherwise?: string;
  /** Throws the reason when the text is wrong. `before` is the value so far of an option that takes several. */
  readonly parse: (text: string, before?: unknown) => Value;
}

type Settings = Readonly<Record<string, Setting<unknown>>>;
type Values<S extends Settings> = { readonly [Key in keyof S]: ReturnType<S[Key]['parse']> };

/** Every benchmark gets this beside the values of its own options. */
export interface Run {
  /** The command line, for the report. */
  readonly command: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onProgress: (line: string) => void;
  /** Writes an unfinished report where `--json` says. */
  readonly save: (report: object) => void;
}

export type OptionsOf<S extends Settings> = Values<S> & Run;

export interface Benchmark<S extends Settings, Report extends object> {
  readonly name: string;
  readonly summary: string;
  readonly settings: S;
  /** Undefined when there is nothing to report. */
  readonly run: (options: OptionsOf<S>) => Promise<Report | undefined>;
  readonly render: (report: Report) => string;
}

export function benchmark<S extends Settings, Report extends object>(given: Benchmark<S, Report>): Command {
  const { name, summary, settings, run, render } = given;
  const command = new Command(name).description(summary).showHelpAfterError('(--help lists the options)');
  for (const [key, setting] of Object.entries(settings)) command.addOption(optionOf(key, setting));
  command.option('--json <file>', 'write the report there too');
  return command.action(async ({ json, ...values }: Values<S> & { readonly json?: string }) => {
    const save = (report: object): void => {
      if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
    };
    const report = await run({ ...(values as Values<S>), ...context(), save });
    if (report === undefined) return;
    save(report);
    process.stdout.write(render(report));
  });
}

/** A tool beside the benchmarks: it takes arguments (`<directory> [file]`) and reports nothing. */
export function tool<S extends Settings>(given: {
  readonly usage: string;
  readonly summary: string;
  readonly settings: S;
  readonly run: (options: Values<S> & Omit<Run, 'save'>, ...args: string[]) => Promise<void>;
}): Command {
  const [name = '', ...args] = given.usage.split(' ');
  const command = new Command(name).description(given.summary).arguments(args.join(' '));
  for (const [key, setting] of Object.entries(given.settings)) command.addOption(optionOf(key, setting));
  return command.action(async (...passed: unknown[]) => {
    const values = command.opts<Values<S>>();
    const texts = passed.filter((each) => typeof each === 'string');
    await given.run({ ...values, ...context() }, ...texts);
  });
}

function optionOf(key: string, { help, takes, otherwise, parse }: Setting<unknown>): Option {
  const flag = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  if (takes === undefined) {
    return otherwise === undefined
      ? new Option(`--no-${flag}`, help)
      : new Option(`--${flag}`, help).default(false);
  }
  const option = new Option(`--${flag} <${takes}>`, help).argParser((text: string, before: unknown) => {
    try {
      return parse(text, before);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  });
  return otherwise === undefined ? option : option.default(parse(otherwise), otherwise || 'none');
}

function context(): Omit<Run, 'save'> {
  return {
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`,
    environment: process.env,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  };
}
