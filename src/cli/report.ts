/**
 * Reports the end of a command: the result on standard output, or a failure as one line on standard error. With `--json`,
 * standard output has exactly one document in both cases, so a script reads one place.
 */
import { styleText } from 'node:util';
import { ConfigError } from '../app/config.ts';
import { ServiceError } from '../errors.ts';
import { ApiError, ConnectionError, MaxsimdError } from '../../clients/typescript/src/errors.ts';
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
  const { code, exitCode = exitCodes.failure } = verdictOn(error);
  streams.stderr.write(`${prefix} ${oneLine(wordsOf(error))}\n`);
  // Neither a known failure nor an error of the operating system: print the stack, to find the defect.
  const isDefect = code === undefined && error instanceof Error && !('code' in error);
  if (isDefect) streams.stderr.write(`${error.stack ?? ''}\n`);
  return exitCode;
}

function errorDocument(error: unknown): {
  readonly error: { readonly code: string; readonly message: string };
} {
  return { error: { code: verdictOn(error).code ?? 'internal_error', message: wordsOf(error) } };
}

const systemWords: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be used by this user',
  EPERM: 'may not be used by this user',
  EISDIR: 'is a folder',
  ENOTDIR: 'is no folder',
  EROFS: 'is on a read-only file system',
  ENOSPC: 'cannot be written: the disk is full',
};

/** A failure of a file, in words. */
function wordsOf(error: unknown): string {
  const { code = '', path: file, syscall } = Object(error) as NodeJS.ErrnoException;
  const words = systemWords[code];
  if (words === undefined || file === undefined) return messageOf(error);
  return code === 'ENOENT' && syscall === 'mkdir' ? `the folder of ${file} ${words}` : `${file} ${words}`;
}

/** The code of a known failure, and its exit code if that is not 1. */
function verdictOn(error: unknown): { readonly code?: string; readonly exitCode?: ExitCode } {
  if (error instanceof CommandFailure) return error;
  if (error instanceof ConfigError) return { code: 'configuration_error', exitCode: exitCodes.usage };
  if (error instanceof ApiError || error instanceof ConnectionError || error instanceof ServiceError)
    return { code: error.code };
  // An argument that no request can carry, such as the identifier `..`.
  return error instanceof MaxsimdError ? { code: 'usage_error', exitCode: exitCodes.usage } : {};
}
