/**
 * The failure of a command. The code is for scripts (`--json`), and the message is one line for people. Exit codes: 0 done,
 * 1 failed, 2 wrong command line or configuration, 130 and 143 stopped by SIGINT and SIGTERM, as shells define it.
 */
export const exitCodes = { ok: 0, failure: 1, usage: 2, SIGINT: 130, SIGTERM: 143 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Codes of the command line. Failures of the API keep the codes of the API. */
export type FailureCode =
  | 'usage_error'
  | 'configuration_error'
  | 'input_error'
  | 'not_found'
  | 'ambiguous'
  | 'too_many_keys'
  | 'not_confirmed'
  | 'verification_failed'
  | 'build_failed'
  | 'compaction_failed'
  | 'backup_failed'
  | 'archive_refused'
  | 'restore_failed'
  | 'interrupted'
  | 'unexpected_response';

export class CommandFailure extends Error {
  readonly code: string;
  readonly exitCode: ExitCode;

  constructor(
    code: FailureCode,
    message: string,
    options: { readonly cause?: unknown; readonly exitCode?: ExitCode } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'CommandFailure';
    this.code = code;
    this.exitCode =
      options.exitCode ??
      (code === 'usage_error' || code === 'configuration_error' ? exitCodes.usage : exitCodes.failure);
  }
}

/** A file that the user gave is missing, unreadable or wrong. */
export function inputError(message: string, cause?: unknown): CommandFailure {
  return new CommandFailure('input_error', message, { cause });
}

/** The process received SIGINT (Ctrl-C) or SIGTERM. */
export class Interruption extends CommandFailure {
  readonly signal: 'SIGINT' | 'SIGTERM';

  constructor(signal: 'SIGINT' | 'SIGTERM', message = `stopped by ${signal}`) {
    super('interrupted', message, { exitCode: exitCodes[signal] });
    this.name = 'Interruption';
    this.signal = signal;
  }
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
