/**
 * The one importer of pino: structured JSON lines on standard error, or short ones if that is a terminal.
 *
 * Never logged are API keys, queries, texts, request bodies and metadata. Callers log named fields. The message of an
 * unexpected error could quote a request (`JSON.parse` quotes its input). So errors are logged by type, code and stack
 * frames, and by message only if its origin is known to quote nothing.
 */
import { styleText } from 'node:util';
import { pino } from 'pino';
import type { Logger as PinoLogger } from 'pino';
import { ServiceError } from '../errors.ts';

export type Logger = PinoLogger;

export interface LoggerOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  readonly destination?: { write(line: string): void };
}

/** Writes synchronously, so that no line is lost in a buffer when the process crashes. */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level,
      base: { service: 'maxsimd', pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError, error: describeError },
    },
    options.destination ??
      (process.stderr.isTTY ? { write: passLogLine } : pino.destination({ dest: 2, sync: true })),
  );
}

/** Writes a line of another process's log as one of this process's own. */
export function passLogLine(line: string): void {
  process.stderr.write(process.stderr.isTTY ? terminalLine(line) : line);
}

export interface ErrorDescription {
  readonly type: string;
  readonly code?: string;
  readonly message?: string;
  readonly frames?: readonly string[];
  readonly cause?: ErrorDescription;
}

const causesMax = 4;
const framesMax = 20;
const messageCharactersMax = 300;

/** An error as it may be logged, without a message that could quote a request. */
export function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  // The message of our own error says where it comes from.
  const frames = error instanceof ServiceError && error.issues === undefined ? [] : stackFrames(error);
  return {
    type: error.name,
    ...(code === undefined ? {} : { code }),
    ...(hasKnownMessage(error, code) ? { message: error.message.slice(0, messageCharactersMax) } : {}),
    ...(frames.length === 0 ? {} : { frames }),
    ...(error.cause instanceof Error && depth < causesMax
      ? { cause: describeError(error.cause, depth + 1) }
      : {}),
  };
}

/**
 * Whether the message quotes no request. Our own do not: operating errors without issues, and broken invariants. Those of the
 * operating system and of SQLite, which have known codes, name files, sockets and constraints. What PostgreSQL or a pooler says
 * of a connection (by the classes of its codes) names users, databases and settings.
 */
function hasKnownMessage(error: Error, code: string | undefined): boolean {
  if (error instanceof ServiceError) return error.issues === undefined;
  if (error.message.startsWith('this is a bug: ')) return true;
  return (
    code !== undefined &&
    /^(E[A-Z0-9]+|SQLITE_[A-Z_]+|ERR_[A-Z0-9_]+|(08|28|3D|53|57)[A-Z0-9]{3})$/.test(code)
  );
}

/** The `at ...` lines alone, because the head of a stack repeats the message. */
function stackFrames(error: Error): string[] {
  return (error.stack ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^at .+:\d+:\d+\)?$/.test(line))
    .slice(0, framesMax);
}

const styles: Readonly<Record<string, Parameters<typeof styleText>[0]>> = {
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
};
/** These help where many lines are searched. */
const left = new Set(
  'time level msg service pid process request_id trace_id tenant_id method route status latency_ms timings_ms'.split(
    ' ',
  ),
);

/** The fields that pino and `createRequestObserver` write. */
interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly msg: string;
  readonly method?: string;
  readonly route?: string;
  readonly status?: number;
  readonly latency_ms?: number;
}

/** A log line as a person at a terminal reads it: time, level, message and the fields that differ. Another line stays as it is. */
export function terminalLine(line: string): string {
  const log = parsed(line);
  if (log === undefined) return line;
  const { time, level, msg, method, route, status, latency_ms: ms } = log;
  const fields = Object.entries(log)
    .filter(([name]) => !left.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const message = route === undefined ? msg : `${method} ${route} ${status} ${ms} ms`;
  const text = [styleText(styles[level] ?? 'dim', level.padEnd(5)), message, ...fields].join(' ');
  return `${styleText('dim', new Date(time).toTimeString().slice(0, 8))} ${text}\n`;
}

function parsed(line: string): LogLine | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return undefined;
  }
}
