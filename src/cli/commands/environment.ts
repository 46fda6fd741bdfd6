/** Values that the entry passes to the commands, so that only the entry reads the environment. */
import type { Config } from '../../app/config.ts';
import type { CommandResult } from '../output.ts';

export interface ProgramEnvironment {
  readonly version: string;
  /** Parses the environment, and throws a `ConfigError` if it is wrong. Only commands that work on this machine call it. */
  readonly config: () => Config;
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
  readonly adminUrl: string | undefined;
  readonly adminKey: string | undefined;
  /** XDG_STATE_HOME. */
  readonly stateHome: string | undefined;
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
  /** From now on Ctrl-C and SIGTERM abort the signal with an `Interruption`. A second one ends the process. */
  readonly interruption: () => AbortSignal;
  /** Runs the service until it ends. */
  readonly serve: (config: Config) => Promise<void>;
  /** Receives the result of a command. */
  readonly report: (result: CommandResult) => void;
}
