/**
 * How a command's end is reported: the result on standard output, a failure as one line on standard error. With
 * `--json` standard output holds exactly one document either way, so that a script needs to read one place.
 */
import { styleText } from 'node:util';
import { ConfigError } from '../app/config.ts';
import { ServiceError } from '../errors.ts';
import { ApiFailure } from './api/failure.ts';
import { CommandFailure, exitCodes, messageOf, type ExitCode } from './failure.ts';
import { oneLine, type CommandResult } from './output.ts';

export interface Streams {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

export function reportResult(result: CommandResult, json: boolean, streams: Streams): ExitCode {
  const { error } = result;
  if (json) {
    const document = error === undefined ? result.document : { ...result.document, ...errorDocument(error) };
    streams.stdout.write(`${JSON.stringify(document)}\n`);
  } else {
    streams.stdout.write(`${result.text}\n`);
  }
  if (error !== undefined) return reportLine(error, streams);
  return result.failed === true ? exitCodes.failure : exitCodes.ok;
}

export function reportFailure(error: unknown, json: boolean, streams: Streams): ExitCode {
  if (json) streams.stdout.write(`${JSON.stringify(errorDocument(error))}\n`);
  return reportLine(error, streams);
}

function reportLine(error: unknown, streams: Streams): ExitCode {
  const prefix = styleText('red', 'maxsimd:', { stream: process.stderr });
  streams.stderr.write(`${prefix} ${oneLine(messageOf(error))}\n`);
  if (isDefect(error)) streams.stderr.write(`${error.stack ?? ''}\n`);
  if (error instanceof CommandFailure) return error.exitCode;
  return error instanceof ConfigError ? exitCodes.usage : exitCodes.failure;
}

function errorDocument(error: unknown): {
  readonly error: { readonly code: string; readonly message: string };
} {
  return { error: { code: codeOf(error), message: messageOf(error) } };
}

function codeOf(error: unknown): string {
  if (error instanceof CommandFailure || error instanceof ApiFailure || error instanceof ServiceError) {
    return error.code;
  }
  return error instanceof ConfigError ? 'configuration_error' : 'internal_error';
}

/** Neither one of our failures nor one of the operating system's: the place it came from matters. */
function isDefect(error: unknown): error is Error {
  const known =
    error instanceof CommandFailure ||
    error instanceof ApiFailure ||
    error instanceof ServiceError ||
    error instanceof ConfigError;
  return error instanceof Error && !known && !('code' in error);
}
