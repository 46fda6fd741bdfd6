/**
 * Usage on its way into `usage.db`: files that are only appended to, one a process. An append is one write to the
 * operating system, which survives the death of the process; a commit of the database on its own thread takes
 * several times as long, mostly to wake that thread.
 *
 * `usage.db` holds how much of each file was folded into it, in the transaction that folds (`foldJournals`). So
 * an event counts once whoever folds and however often, and readers add what is not folded yet. Only its
 * owner, or the next opener after a day, removes a file.
 *
 * A record is a line: crc32 (8 hexadecimal digits), a blank, a JSON array of the parameters of `addUsageSql` (tokens
 * as a decimal string). What follows a line that is incomplete or fails its checksum does not count.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import type { UsageEvent } from '../contract.ts';
import { ServiceError } from '../../errors.ts';
import type { Connection } from './connection.ts';
import { addUsageSql, usageParameters } from './rows.ts';
import { foldedBytesByName } from './statements.ts';

const namePattern = /^usage-[0-9a-f-]{36}\.journal$/;
const checksumLength = 8;
/** A file is left for a new one at this size, and when nothing was appended for this long. */
const fileBytesMax = 4 << 20;
const fileIdleMsMax = 3_600_000;
/** A file not appended to for this long has no owner: its owner would have left it. */
const abandonedMs = 24 * fileIdleMsMax;

interface File {
  readonly name: string;
  readonly fd: number;
  bytes: number;
  usedAtMs: number;
}

/** Appends the events of this process. */
export class UsageJournal {
  readonly #directory: string;
  readonly #nowMs: () => number;
  #current: File | undefined;
  readonly #left: string[] = [];

  /** `directory`: beside `usage.db`. */
  constructor(directory: string, nowMs: () => number = Date.now) {
    this.#directory = directory;
    this.#nowMs = nowMs;
  }

  /** In the hands of the operating system when it returns; throws `service_unavailable` and then counts nothing. */
  append(event: UsageEvent): void {
    const line = Buffer.from(recordOf(event));
    try {
      if (this.#isSpent()) this.leave();
      const file = (this.#current ??= this.#create());
      const written = writeSync(file.fd, line, 0, line.length, file.bytes);
      if (written !== line.length) throw new Error('the disk took part of a record');
      file.bytes += line.length;
      file.usedAtMs = this.#nowMs();
    } catch (error) {
      this.#abandon();
      throw unavailable(error);
    }
  }

  /** Makes sure that there is a file; throws `service_unavailable`. */
  open(): void {
    try {
      this.#current ??= this.#create();
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** The next event goes to a new file. */
  leave(): void {
    const file = this.#current;
    if (file === undefined) return;
    this.#current = undefined;
    this.#left.push(file.name);
    closeSync(file.fd);
  }

  get hasLeft(): boolean {
    return this.#left.length > 0;
  }

  /** Files that were left since the last call: to be removed once they are folded. */
  takeLeft(): readonly string[] {
    return this.#left.splice(0);
  }

  remove(names: readonly string[]): void {
    for (const name of names) unlinkSync(path.join(this.#directory, name));
  }

  #create(): File {
    const name = `usage-${randomUUID()}.journal`;
    const fd = openSync(path.join(this.#directory, name), 'wx', 0o600);
    return { name, fd, bytes: 0, usedAtMs: this.#nowMs() };
  }

  #isSpent(): boolean {
    const file = this.#current;
    if (file === undefined) return false;
    return file.bytes >= fileBytesMax || this.#nowMs() - file.usedAtMs >= fileIdleMsMax;
  }

  /** What a failed write left behind it must not count, and nothing may follow it. */
  #abandon(): void {
    const file = this.#current;
    if (file === undefined) return;
    this.#current = undefined;
    this.#left.push(file.name);
    try {
      ftruncateSync(file.fd, file.bytes);
      closeSync(file.fd);
    } catch {
      // A part of a record at the end of a file does not count either.
    }
  }
}

/** The journals as they lie there now. What settled before the call is in them or in the database. */
export class OpenJournals {
  readonly #files: { readonly name: string; readonly fd: number }[] = [];

  constructor(directory: string) {
    for (const name of readdirSync(directory)) {
      if (!namePattern.test(name)) continue;
      try {
        this.#files.push({ name, fd: openSync(path.join(directory, name), 'r') });
      } catch (error) {
        // Removed since: it is folded.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  }

  /** Sums of the events beyond `foldedBytes`, and where the last whole record ends. */
  *unfolded(
    foldedBytes: (name: string) => number,
  ): Generator<{ readonly name: string; readonly end: number; readonly events: readonly UsageEvent[] }> {
    for (const { name, fd } of this.#files) {
      const from = foldedBytes(name);
      const { length, events } = recordsFrom(fd, from);
      if (length > 0) yield { name, end: from + length, events: summed(events) };
    }
  }

  close(): void {
    for (const { fd } of this.#files.splice(0)) closeSync(fd);
  }
}

/** Folds what the journals hold and the database does not. Runs inside a transaction on `usage.db`. */
export function foldJournals(connection: Connection, directory: string): void {
  const folded = foldedBytesByName(connection);
  const add = connection.prepare(addUsageSql);
  const note = connection.prepare(
    `INSERT INTO usage_journals (name, folded_bytes, at_ms) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET folded_bytes = excluded.folded_bytes, at_ms = excluded.at_ms`,
  );
  const journals = new OpenJournals(directory);
  try {
    for (const { name, end, events } of journals.unfolded((file) => folded.get(file) ?? 0)) {
      for (const event of events) add.run(...usageParameters(event));
      note.run(name, end, Date.now());
    }
  } finally {
    journals.close();
  }
}

/** Removes folded files without an owner, and notes of files that are long gone. Not inside a transaction. */
export function removeAbandonedJournals(connection: Connection, directory: string): void {
  const oldest = Date.now() - abandonedMs;
  for (const name of readdirSync(directory)) {
    const file = path.join(directory, name);
    const found = statSync(file, { throwIfNoEntry: false });
    if (namePattern.test(name) && found !== undefined && found.mtimeMs < oldest) unlinkSync(file);
  }
  const present = new Set(readdirSync(directory));
  const names = connection
    .prepare<[number], string>('SELECT name FROM usage_journals WHERE at_ms < ?')
    .pluck()
    .all(oldest);
  const forget = connection.prepare('DELETE FROM usage_journals WHERE name = ?');
  for (const name of names) if (!present.has(name)) forget.run(name);
}

function recordOf(event: UsageEvent): string {
  const { tenantId, month, requests = 0, inputTokens = 0n, documentUpserts = 0, searches = 0 } = event;
  const counts = `${requests},"${inputTokens}",${documentUpserts},${searches},${event.scores ?? 0}`;
  const values = `[${JSON.stringify(tenantId)},${JSON.stringify(month)},${counts}]`;
  return `${checksumOf(values)} ${values}\n`;
}

function checksumOf(values: string): string {
  return crc32(values).toString(16).padStart(checksumLength, '0');
}

type Values = [string, string, number, string, number, number, number];

/** Whole records from a position on, and their length in bytes. */
function recordsFrom(fd: number, from: number): { readonly length: number; readonly events: UsageEvent[] } {
  const bytes = Buffer.alloc(Math.max(0, fstatSync(fd).size - from));
  const text = bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, from));
  const events: UsageEvent[] = [];
  let length = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', length)) {
    const values = text.slice(length + checksumLength + 1, end);
    if (text.slice(length, length + checksumLength) !== checksumOf(values)) break;
    events.push(eventOf(JSON.parse(values) as Values));
    length = end + 1;
  }
  return { length, events };
}

function eventOf([tenantId, month, requests, tokens, documentUpserts, searches, scores]: Values): UsageEvent {
  return { tenantId, month, requests, inputTokens: BigInt(tokens), documentUpserts, searches, scores };
}

/** One event a tenant and month. */
function summed(events: readonly UsageEvent[]): readonly UsageEvent[] {
  const sums = new Map<string, UsageEvent>();
  for (const event of events) {
    const key = `${event.tenantId} ${event.month}`;
    const sum = sums.get(key);
    const add = (counter: 'requests' | 'documentUpserts' | 'searches' | 'scores'): number =>
      (sum?.[counter] ?? 0) + (event[counter] ?? 0);
    sums.set(key, {
      tenantId: event.tenantId,
      month: event.month,
      requests: add('requests'),
      inputTokens: (sum?.inputTokens ?? 0n) + (event.inputTokens ?? 0n),
      documentUpserts: add('documentUpserts'),
      searches: add('searches'),
      scores: add('scores'),
    });
  }
  return [...sums.values()];
}

function unavailable(cause: unknown): ServiceError {
  const { code } = cause as NodeJS.ErrnoException;
  const reason = code === undefined ? '' : ` (${code})`;
  return new ServiceError('service_unavailable', `the usage ledger is not available now${reason}`, {
    retryAfterSeconds: 1,
    cause,
  });
}
