/**
 * What a command ends with when it cannot do its work. The code is a word for scripts (`--json`), the
 * message one line for people. Exit codes: 0 done, 1 failed, 2 the command line or the configuration is
 * wrong, 130 and 143 stopped by SIGINT and SIGTERM, as shells have it.
 */
export const exitCodes = { ok: 0, failure: 1, usage: 2, SIGINT: 130, SIGTERM: 143 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Codes of the command line itself; failures of the API keep the API's own codes. */
export type FailureCode =
  | 'usage_error'
  | 'configuration_error'
  | 'input_error'
  | 'not_found'
  | 'ambiguous'
  | 'too_many_keys'
  | 'not_confirmed'
  | 'verification_failed'
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

/** Somebody pressed Ctrl-C, or asked the process to end. */
export class Interruption extends CommandFailure {
  readonly signal: 'SIGINT' | 'SIGTERM';

  constructor(signal: 'SIGINT' | 'SIGTERM', message = `stopped by ${signal}`) {
    super('interrupted', message, { exitCode: exitCodes[signal] });
    this.name = 'Interruption';
    this.signal = signal;
  }
}

/** The words of an unknown error, without its stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
