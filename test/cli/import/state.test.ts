/** Imports that are killed, stopped, or have no place for their state: where they go on, and what they leave behind. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interruption } from '../../../src/cli/failure.ts';
import { importDocuments } from '../../../src/cli/import/command.ts';
import { Checkpoint, startState } from '../../../src/cli/import/checkpoint.ts';
import { errorReply, type ApiDouble } from '../../support/http/api-double.ts';
import { runJson, start } from '../../support/commands/command-process.ts';
import type { Finished, RunOptions } from '../../support/commands/command-here.ts';
import { announceRandom } from '../../support/running/random.ts';
import { isUpsert, rows, startImportStage, stateFilesIn, writeInput } from './import-stage.ts';

let api: ApiDouble;
let directory: string;
let stateHome: string;
let options: RunOptions;

beforeEach(async () => {
  ({ api, directory, stateHome, options } = await startImportStage());
});

afterEach(() => api.close());

const input = (objects: readonly (object | string)[], name?: string): string =>
  writeInput(directory, objects, name);
/** Names of the files that imports left in the state directory. */
const stateFiles = (): readonly string[] => stateFilesIn(stateHome);

const importFile = (file: string, ...more: string[]): ReturnType<typeof runJson> =>
  runJson(['import', file, '--index', 'books', ...more], options);

describe('an import that is killed', () => {
  /** Kills the process with SIGKILL while its third upsert is unanswered. */
  async function killInTheMiddle(args: readonly string[]): Promise<void> {
    let reached = (): void => {};
    const third = new Promise<void>((resolve) => (reached = resolve));
    api.intercept = (request) => {
      if (!isUpsert(request) || api.upserts().length < 3) return undefined;
      reached();
      return new Promise(() => {});
    };
    const running = start(args, options);
    await third;
    running.process.kill('SIGKILL');
    const { signal } = await running.finished;
    expect(signal).toBe('SIGKILL');
    api.intercept = () => undefined;
  }

  it('goes on where it was, and its counts are those of the whole file', async () => {
    const file = input(['no json', ...rows(110), 'broken', ...rows(240).slice(110)]);
    await killInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1']);
    expect(api.documents.size).toBe(100);
    expect(readdirSync(directory)).toEqual(['input.jsonl']);
    expect(stateFiles()).toEqual([expect.stringMatching(/^import-[0-9a-f]{32}\.json$/)]);
    const before = api.upserts().length;
    const { document } = await importFile(file, '--concurrency', '1');
    expect(document).toMatchObject({ done: 240, failed: 2, resumed: 101 });
    expect(document.failures).toMatchObject([{ line: 1 }, { line: 112 }]);
    expect(api.documents.size).toBe(240);
    expect(api.upserts().length - before).toBe(3);
    expect(stateFiles()).toEqual([]);
  });

  it('shares no state with another file of that name, index, service, or way of reading', async () => {
    const file = input(rows(200));
    mkdirSync(path.join(directory, 'other'));
    const other = input(rows(200), 'other/input.jsonl');
    await killInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1']);
    for (const args of [
      [other, '--index', 'books'],
      [file, '--index', 'films'],
      [file, '--index', 'books', '--metadata-fields', 'a'],
      [file, '--index', 'books', '--format', 'jsonl'],
    ]) {
      const { document } = await runJson(['import', ...args], options);
      expect(document).toMatchObject({ done: 200, resumed: 0 });
    }
    // None of them has touched it.
    expect((await importFile(file)).document).toMatchObject({ done: 200, resumed: 100 });
  });

  it.each([
    ['the home of the user without XDG_STATE_HOME', ''],
    ['it too when that is no absolute path', 'relative'],
  ])('keeps its state in %s', async (_, value) => {
    const home = mkdtempSync(path.join(directory, 'home-'));
    options = { environment: { ...options.environment, XDG_STATE_HOME: value, HOME: home } };
    const file = input(rows(200));
    await killInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1']);
    expect(readdirSync(path.join(home, '.local/state/maxsimd'))).toHaveLength(1);
    expect((await importFile(file)).document).toMatchObject({ done: 200, resumed: 100 });
  });

  it('starts over when the file has changed since', async () => {
    const file = input(rows(200));
    await killInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1']);
    input([{ id: 'new first', text: 'fresh' }, ...rows(200)]);
    const { document } = await importFile(file);
    expect(document).toMatchObject({ done: 201, resumed: 0 });
    expect(api.documents.has('new first')).toBe(true);
  });

  it('starts over when its state is damaged, and says so', async () => {
    const file = input(rows(200));
    await killInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1']);
    const state = path.join(stateHome, 'maxsimd', stateFiles()[0]!);
    const text = readFileSync(state, 'utf8');
    writeFileSync(state, text.replace('"rows":100', '"rows":190'));
    expect(readFileSync(state, 'utf8')).not.toBe(text);
    const { document, stderr } = await importFile(file);
    expect(document).toMatchObject({ done: 200, resumed: 0 });
    expect(stderr).toMatch(/^the state of an earlier run .* this import starts over$/m);
    expect(api.documents.size).toBe(200);
  });

  it('keeps its state where --state says, for one index only', async () => {
    const file = input(rows(200));
    const state = path.join(directory, 'state');
    await killInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1', '--state', state]);
    expect(readdirSync(directory).toSorted()).toEqual(['input.jsonl', 'state']);
    const other = await runJson(['import', file, '--index', 'films', '--state', state], options);
    expect(other.document).toMatchObject({ done: 200, resumed: 0 });
  });
});

it('a state with a flipped bit in any byte, or of an earlier release, is that of a start, and it is said', () => {
  const random = announceRandom('flipped bits of a state');
  const stateFile = path.join(directory, 'state');
  const checkpoint = new Checkpoint({
    source: directory,
    files: [],
    reading: {},
    url: '',
    indexId: '',
    stateHome,
    stateFile,
  });
  const said: string[] = [];
  const load = () => checkpoint.load((message) => said.push(message));
  const state = { ...startState, position: { ...startState.position, rows: 10, done: 10 } };
  expect(load()).toEqual(startState);
  checkpoint.save(state);
  expect(load()).toEqual(state);
  expect(said).toEqual([]);
  const intact = readFileSync(stateFile);
  const flipped = [...intact.keys()].map((place) => {
    const bytes = Buffer.from(intact);
    bytes[place]! ^= 1 << random.integer(0, 7);
    return bytes;
  });
  const { data } = JSON.parse(intact.toString()) as { readonly data: object };
  for (const bytes of [...flipped, JSON.stringify({ ...data, format: 'maxsimd-import-3' })]) {
    writeFileSync(stateFile, bytes);
    expect(load(), bytes.toString()).toEqual(startState);
    expect(said.splice(0)).toEqual([expect.stringContaining('this import starts over')]);
  }
});

describe('an import that is stopped by a person', () => {
  /** Sends the signal while the third upsert is unanswered. */
  async function stopInTheMiddle(args: readonly string[], signal: NodeJS.Signals): Promise<Finished> {
    let reached = (): void => {};
    const third = new Promise<void>((resolve) => (reached = resolve));
    api.intercept = (request) => {
      if (!isUpsert(request) || api.upserts().length < 3) return undefined;
      reached();
      return new Promise(() => {});
    };
    const running = start([...args, '--json'], options);
    await third;
    running.process.kill(signal);
    const finished = await running.finished;
    api.intercept = () => undefined;
    return finished;
  }

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('with %s says what was done and how to go on', async (signal, exitCode) => {
    const file = input(rows(200));
    const stopped = await stopInTheMiddle(['import', file, '--index', 'books', '--concurrency', '1'], signal);
    expect(stopped.exitCode).toBe(exitCode);
    const message = `stopped by ${signal} after row 100 (100 documents done, 0 failed): the same command goes on from there`;
    expect(stopped.stderr).toBe(`maxsimd: ${message}\n`);
    expect(JSON.parse(stopped.stdout)).toMatchObject({ done: 100, error: { code: 'interrupted', message } });
    const { document } = await importFile(file, '--concurrency', '1');
    expect(document).toMatchObject({ done: 200, resumed: 100 });
  });

  it('ends at once while standard input is open, and says that it starts over', async () => {
    // As long as it is not ended, more may come.
    const text = rows(200).map((row) => `${JSON.stringify(row)}\n`);
    options = { ...options, input: text.join(''), inputStaysOpen: true };
    const stopped = await stopInTheMiddle(
      ['import', '-', '--index', 'books', '--concurrency', '1'],
      'SIGINT',
    );
    expect(stopped.exitCode).toBe(130);
    expect(stopped.stderr).toMatch(/the same command starts over, which replaces what it sent\n$/);
  });

  it.each(['jsonl', 'csv'] as const)('ends while the first rows of %s are waited for', async (format) => {
    const stdin = new PassThrough();
    stdin.write(format === 'csv' ? 'id,text\n' : '\n');
    const abort = new AbortController();
    const running = importDocuments({
      endpoint: { url: options.environment!['MAXSIMD_URL']!, key: 'qkv_live_test', timeoutMs: 1000 },
      choice: { source: '-', format, fields: {} },
      index: { name: 'books', model: undefined },
      concurrency: undefined,
      stateFile: undefined,
      stateHome,
      retryMs: 1000,
      showsPreview: false,
      signal: abort.signal,
      stdin,
      stderr: process.stderr,
    });
    const interruption = new Interruption('SIGINT');
    setImmediate(() => abort.abort(interruption));
    await expect(running).rejects.toBe(interruption);
  });

  it('while it waits for a service that is away says that it was stopped', async () => {
    let asked = (): void => {};
    const request = new Promise<void>((resolve) => (asked = resolve));
    api.intercept = () => {
      asked();
      return errorReply(503, 'service_unavailable', { retryAfter: 60 });
    };
    const running = start(['import', input(rows(1)), '--index', 'books', '--json'], options);
    await request;
    running.process.kill('SIGINT');
    expect(await running.finished).toMatchObject({ exitCode: 130, stderr: 'maxsimd: stopped by SIGINT\n' });
  });
});

describe('an import whose state has no place', () => {
  it('is an error when the place was asked for', async () => {
    const { exitCode, stderr } = await importFile(
      input(rows(1)),
      '--state',
      path.join(directory, 'no/such/place'),
    );
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/cannot keep the state of the import/);
    expect(api.documents.size).toBe(0);
  });

  it('goes on without, and says so, when the state directory cannot be made', async () => {
    writeFileSync(path.join(stateHome, 'maxsimd'), 'a file');
    const { exitCode, document, stderr } = await importFile(input(rows(1)));
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({ done: 1 });
    expect(stderr).toMatch(/^maxsimd: this import is not resumable: cannot keep the state/);
  });
});
