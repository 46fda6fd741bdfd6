/** `maxsimd import`: sends the documents of a file, standard input or a directory to an index, through the HTTP API. */
import type { Readable } from 'node:stream';
import type { Index } from '../../../clients/typescript/src/types.ts';
import { clientOf, ensureIndex, rateLimitHint, type Endpoint, type WantedIndex } from '../client.ts';
import { CommandFailure, Interruption, messageOf } from '../failure.ts';
import type { CommandResult } from '../output.ts';
import { Checkpoint, problemsKeptMax, startState, type ImportState } from './checkpoint.ts';
import { ImportDisplay } from './display.ts';
import { DocumentReader, isProblem, type ImportItem } from './document.ts';
import { lookAhead } from './look-ahead.ts';
import { previewOf, previewText, type Preview } from './preview.ts';
import { resultOf, type ImportReport } from './report.ts';
import { runImport } from './run.ts';
import {
  bytesOf,
  isRepeatable,
  openSource,
  rowsOf,
  type Source,
  type SourceChoice,
} from './sources/source.ts';

export interface ImportCommand {
  /** `undefined` = a dry run, which sends nothing. */
  readonly endpoint: Endpoint | undefined;
  readonly choice: SourceChoice;
  readonly index: WantedIndex;
  /** Requests at once; `undefined` = as many as the tenant may send. */
  readonly concurrency: number | undefined;
  readonly stateFile: string | undefined;
  /** The user's (XDG_STATE_HOME), as the environment has it. */
  readonly stateHome: string | undefined;
  /** How long to wait for a service that is away, or was never reached; `undefined` = by default. */
  readonly retryMs: number | undefined;
  /** Whether to say before the start which fields become what. */
  readonly showsPreview: boolean;
  readonly signal: AbortSignal;
  readonly stdin: Readable;
  readonly stderr: NodeJS.WriteStream;
}

/** Each request in flight holds up to 5 MiB of body. */
const concurrencyMaxByDefault = 16;
const retryMsDefault = 300_000;

/** Rejects with the interruption, if there was one, whatever failed because of it. */
export async function importDocuments(command: ImportCommand): Promise<CommandResult> {
  const { choice, signal, stdin } = command;
  // An open standard input would keep the process alive.
  const leave = (): void => void (choice.source === '-' && stdin.destroy());
  signal.addEventListener('abort', leave, { once: true });
  try {
    signal.throwIfAborted();
    return await importFrom(command);
  } catch (error) {
    // The abort may have made a wait fail with another error.
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}

/** Checks the input first, as far as this is cheap, so that a wrong input creates no index. */
async function importFrom(command: ImportCommand): Promise<CommandResult> {
  const { choice, stdin, stderr } = command;
  const source = await openSource(choice, stdin, command.signal);
  if (!isRepeatable(source) && command.stateFile !== undefined)
    throw new CommandFailure('usage_error', 'standard input cannot be read again: --state is for files');
  const reader = new DocumentReader(choice.fields);
  const ahead = await lookAhead(readAll(source, reader), { ...source, choice: choice.fields });
  const preview = previewOf(source, ahead);
  if (command.showsPreview) stderr.write(`${previewText(source, preview)}\n\n`);
  const display = new ImportDisplay(stderr, bytesOf(source));
  const work = { command, source, reader, preview, items: ahead.items, display };
  try {
    return await (command.endpoint === undefined ? readItems(work) : importItems(work, command.endpoint));
  } finally {
    display.stop();
  }
}

async function* readAll(source: Source, reader: DocumentReader): AsyncGenerator<ImportItem> {
  for await (const row of rowsOf(source)) yield reader.read(row);
}

interface ImportWork {
  readonly command: ImportCommand;
  readonly source: Source;
  readonly reader: DocumentReader;
  readonly preview: Preview;
  readonly items: AsyncGenerator<ImportItem>;
  readonly display: ImportDisplay;
}

/** A dry run: reads everything, and reports what an import would send and what it would refuse. */
async function readItems({ command, items, display, ...work }: ImportWork): Promise<CommandResult> {
  const report: ImportReport = {
    ...work,
    target: { name: command.index.name },
    start: startState.position,
    position: startState.position,
    problems: [],
    deleted: 0,
    startedMs: performance.now(),
  };
  for await (const { number, item, bytesRead } of items) {
    command.signal.throwIfAborted();
    const { documents, done, failed, tokens } = report.position;
    const isRefused = isProblem(item);
    if (isRefused && failed < problemsKeptMax) report.problems.push(item);
    report.position = {
      rows: number,
      documents: documents + (isRefused ? 0 : 1),
      done: done + (isRefused ? 0 : item.parts),
      failed: failed + (isRefused ? 1 : 0),
      tokens,
    };
    display.settled(report.position, bytesRead);
  }
  display.stop();
  return resultOf(report, { stderr: command.stderr });
}

async function importItems(
  { command, items, display, ...work }: ImportWork,
  endpoint: Endpoint,
): Promise<CommandResult> {
  const startedMs = performance.now();
  let hint: string | undefined;
  const client = clientOf(endpoint, command.retryMs ?? retryMsDefault, {
    ...(command.retryMs !== undefined && { unreachedMsMax: command.retryMs }),
    onRetry: (error, delayMs) => {
      if (error.code === 'rate_limit_exceeded' && hint !== undefined) {
        display.say(hint);
        hint = undefined;
      }
      display.waiting(error, delayMs);
    },
  });
  const { index, created } = await ensureIndex(client, command.index, command.signal);
  const unmatched = unmatchedHint(index, command.choice.fields.identifiers);
  if (unmatched !== undefined && !created) display.say(unmatched);
  const usage = await client.usage({ signal: command.signal });
  hint = rateLimitHint(usage);
  const checkpoint = checkpointOf(command, work.source, client.url, index);
  const state = checkpoint?.load((message) => display.say(message)) ?? startState;
  const report: ImportReport = {
    ...work,
    target: { ...index, created },
    start: state.position,
    position: state.position,
    problems: [...state.problems],
    deleted: 0,
    startedMs,
  };
  if (report.start.rows > 0) display.settled(report.start, 0);
  const resumable = checkpoint !== undefined && trySave(checkpoint, state, command);
  let failure: { readonly error: unknown } | undefined;
  let stopped: string | undefined;
  try {
    const { keepText, identifiers, cut = false } = command.choice.fields;
    report.deleted = await runImport({
      client,
      indexId: index.id,
      items,
      keepText,
      identifiers,
      cut,
      concurrency:
        command.concurrency ?? Math.min(concurrencyMaxByDefault, usage.limits.max_concurrent_requests),
      start: report.start,
      signal: command.signal,
      onTaken: (documents) => display.taken(documents),
      onSettled: ({ position, problems, bytesRead }) => {
        report.position = position;
        report.problems.push(...problems.slice(0, Math.max(0, problemsKeptMax - report.problems.length)));
        if (resumable) checkpoint.save(report);
        display.settled(position, bytesRead);
      },
    });
    if (resumable) checkpoint.remove();
  } catch (error) {
    const { position } = report;
    const next = resumable ? 'goes on from there' : 'starts over, which replaces what it sent';
    const counts = `${position.done} documents done, ${position.failed} failed`;
    stopped = `after row ${position.rows} (${counts}): the same command ${next}`;
    const isAsked = error instanceof Interruption;
    failure = { error: isAsked ? new Interruption(error.signal, `${error.message} ${stopped}`) : error };
  }
  display.stop();
  return { ...resultOf(report, { stopped, stderr: command.stderr }), ...failure };
}

/** Says that searches of the index do not match the identifiers, unless they do. */
function unmatchedHint(
  { name, match_fields: fields = [] }: Index,
  field: string | undefined,
): string | undefined {
  if (field === undefined || fields.includes(field)) return undefined;
  const all = [...fields, field].join(',');
  return `maxsimd: searches of the index ${JSON.stringify(name)} do not match the field ${JSON.stringify(field)}: stop this, run maxsimd index update ${JSON.stringify(name)} --match-fields ${all}, and import again`;
}

function checkpointOf(
  { choice, stateFile, stateHome }: ImportCommand,
  source: Source,
  url: string,
  index: Index,
): Checkpoint | undefined {
  const { files } = source;
  if (!isRepeatable(source)) return undefined;
  // Once searches match the identifiers, those that were imported before are imported again.
  const matched = unmatchedHint(index, choice.fields.identifiers) === undefined;
  const reading = { format: choice.format, ...choice.fields, ...(matched ? {} : { matched }) };
  return new Checkpoint({
    source: choice.source,
    files,
    reading,
    url,
    indexId: index.id,
    stateHome,
    stateFile,
  });
}

/**
 * Whether the state can be kept. A file that `--state` names must be writable. Without it, the import goes on if the state
 * directory of the user is not writable.
 */
function trySave(checkpoint: Checkpoint, state: ImportState, command: ImportCommand): boolean {
  try {
    checkpoint.save(state);
    return true;
  } catch (error) {
    if (command.stateFile !== undefined) throw error;
    command.stderr.write(`maxsimd: this import is not resumable: ${messageOf(error)}\n`);
    return false;
  }
}
