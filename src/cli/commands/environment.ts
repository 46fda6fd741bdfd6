/** What the entry hands to the commands; nothing below it reads the environment. */
import type { Config } from '../../app/config.ts';
import type { CommandResult } from '../output.ts';

export interface ProgramEnvironment {
  readonly version: string;
  /** Parses the environment; a bad one is a `ConfigError`. Only commands that work on this machine ask. */
  readonly config: () => Config;
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
  readonly adminUrl: string | undefined;
  readonly adminKey: string | undefined;
  /** XDG_STATE_HOME. */
  readonly stateHome: string | undefined;
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
  /** From now on Ctrl-C and SIGTERM abort this, with an `Interruption`; the second one ends the process. */
  readonly interruption: () => AbortSignal;
  /** Runs the service until it ends. */
  readonly serve: (config: Config) => Promise<void>;
  /** Receives what a command came to. */
  readonly report: (result: CommandResult) => void;
}
