/** `maxsimd import`: documents of a JSONL file or a BEIR directory into an index, through the HTTP API. */
import { statSync } from 'node:fs';
import { ApiClient } from '../api/client.ts';
import type { Endpoint } from '../api/exchange.ts';
import type { ApiFailure } from '../api/failure.ts';
import { beirFile, isDirectory } from '../beir/directory.ts';
import { CommandFailure, messageOf } from '../failure.ts';
import { readLines } from '../jsonl.ts';
import { fields, oneLine, type CommandResult } from '../output.ts';
import { startProgress } from '../progress.ts';
import { batchLines } from './batches.ts';
import { Checkpoint, problemsKeptMax, type ImportPosition, type ImportState } from './checkpoint.ts';
import type { DocumentProblem } from './document.ts';
import { Parallelism, runImport } from './run.ts';

export interface ImportCommand {
  readonly endpoint: Endpoint;
  /** A `.jsonl` or `.jsonl.gz` file, or a BEIR directory. */
  readonly source: string;
  readonly indexName: string;
  /** Requests at once; `undefined` = what the tenant's limits allow. */
  readonly concurrency: number | undefined;
  readonly stateFile: string | undefined;
  /** How long an unavailable service is waited for. */
  readonly retryMs: number;
  readonly stderr: NodeJS.WriteStream;
}

/** Each request in flight holds up to 5 MiB of body. */
const concurrencyMaxByDefault = 16;

/** Everything the end of an import tells. */
interface ImportReport {
  readonly inputFile: string;
  readonly index: { readonly id: string; readonly name: string; readonly created: boolean };
  readonly start: ImportPosition;
  position: ImportPosition;
  /** The first `problemsKeptMax`, those of the runs before this one included. */
  readonly problems: DocumentProblem[];
  readonly startedMs: number;
}

export async function importDocuments(command: ImportCommand): Promise<CommandResult> {
  const inputFile = isDirectory(command.source) ? beirFile(command.source, 'corpus') : command.source;
  const display = new ImportDisplay(command.stderr, inputSize(inputFile));
  try {
    return await importFile(command, inputFile, display);
  } finally {
    display.stop();
  }
}

async function importFile(
  command: ImportCommand,
  inputFile: string,
  display: ImportDisplay,
): Promise<CommandResult> {
  const startedMs = performance.now();
  let parallelism: Parallelism | undefined;
  const client = new ApiClient(command.endpoint, {
    policy: { unavailableMsMax: command.retryMs, brokenAttemptsMax: 3 },
    onWait: (failure, delayMs) => {
      if (failure.kind === 'concurrency_limited') parallelism?.refused();
      display.waiting(failure, delayMs);
    },
  });
  const { index, created } = await client.ensureIndex(command.indexName);
  parallelism = new Parallelism(command.concurrency ?? (await concurrencyOf(client)));
  const checkpoint = new Checkpoint({
    inputFile,
    url: client.url,
    indexId: index.id,
    stateFile: command.stateFile,
  });
  const state = checkpoint.load();
  const report: ImportReport = {
    inputFile,
    index: { ...index, created },
    start: state.position,
    position: state.position,
    problems: [...state.problems],
    startedMs,
  };
  const resumable = trySave(checkpoint, state, command);
  let stopped: { readonly error: unknown } | undefined;
  try {
    await runImport({
      client,
      indexId: index.id,
      batches: batchLines(readLines(inputFile), report.start.lines),
      parallelism,
      start: report.start,
      onSettled: (position, batch, problems) => {
        report.position = position;
        report.problems.push(...problems.slice(0, Math.max(0, problemsKeptMax - report.problems.length)));
        if (resumable) checkpoint.save(report);
        display.settled(position, batch.fileBytesRead);
      },
    });
    if (resumable) checkpoint.remove();
  } catch (error) {
    stopped = { error };
  }
  display.stop();
  return { ...resultOf(report, command.stderr), ...stopped };
}

async function concurrencyOf(client: ApiClient): Promise<number> {
  const { limits } = await client.usage();
  return Math.min(concurrencyMaxByDefault, limits.max_concurrent_requests);
}

function inputSize(file: string): number {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new CommandFailure('input_error', `${file} does not exist`);
  if (!stats.isFile()) throw new CommandFailure('input_error', `${file} is not a file`);
  return stats.size;
}

/**
 * Whether the state can be kept. A place that was asked for must work; beside an input that lies where
 * nothing can be written, the import goes on without.
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

function resultOf(report: ImportReport, stderr: NodeJS.WriteStream): CommandResult {
  const { index, position, start, problems, inputFile } = report;
  for (const problem of problems) stderr.write(`${inputFile}:${problem.line}: ${describe(problem)}\n`);
  const unlisted = position.failed - problems.length;
  if (unlisted > 0) stderr.write(`${inputFile}: ${unlisted} more failed\n`);
  const seconds = (performance.now() - report.startedMs) / 1000;
  return {
    document: {
      index: index.name,
      index_id: index.id,
      index_created: index.created,
      done: position.done,
      failed: position.failed,
      resumed: start.done + start.failed,
      seconds: Number(seconds.toFixed(3)),
      failures: problems.map((item) => ({ line: item.line, doc_id: item.docId ?? null, error: item.error })),
    },
    text: fields([
      ['index', `${index.name} (${index.id})${index.created ? ', created' : ''}`],
      ['done', String(position.done)],
      ['failed', String(position.failed)],
      ...(start.lines === 0 ? [] : [['resumed', `after line ${start.lines}`] as const]),
      ['time', `${seconds.toFixed(1)} s`],
    ]),
    failed: position.failed > 0,
  };
}

function describe(problem: DocumentProblem): string {
  return oneLine(problem.docId === undefined ? problem.error : `document ${problem.docId}: ${problem.error}`);
}

/** What is seen while it runs: the share of the input that is settled, counts, and what is being waited for. */
class ImportDisplay {
  readonly #progress: ReturnType<typeof startProgress>;
  #bytesRead = 0;
  #counts = '';
  #waiting = '';

  constructor(stderr: NodeJS.WriteStream, inputBytes: number) {
    this.#progress = startProgress(stderr, inputBytes);
  }

  settled(position: ImportPosition, bytesRead: number): void {
    this.#bytesRead = bytesRead;
    this.#counts = `${position.done} done, ${position.failed} failed`;
    this.#waiting = '';
    this.#show();
  }

  waiting(failure: ApiFailure, delayMs: number): void {
    this.#waiting = `  waiting ${Math.ceil(delayMs / 1000)} s: ${failure.code}`;
    this.#show();
  }

  stop(): void {
    this.#progress.stop();
  }

  #show(): void {
    this.#progress.update(this.#bytesRead, `${this.#counts}${this.#waiting}`);
  }
}
