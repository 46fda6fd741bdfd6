/**
 * Run by failed-calls.test.ts on a logged disk: does one thing after the other while one call that changes or syncs a file
 * fails, or all from there on, and compares what there is afterwards with what was acknowledged. Arguments: directory,
 * seed, how many calls lie between two that fail, and with which error numbers (0: writes do nothing). Prints what it saw as JSON.
 */
import assert from 'node:assert/strict';
import { openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { inspect } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../src/errors.ts';
import { DiskState } from '../../support/machine/disk-state.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { columnsOf, openHost, openStage, type Host, type Stage } from '../../support/stages/index-stage.ts';
import { Expectation } from './expectation.ts';
import { documentOf, loadSettings, notesOn, recordSearch, type Note, type Operation } from './load.ts';

const [directory = '', seed = '', stride = '', ...errnos] = process.argv.slice(2);
const random = seededRandom(Number(seed));
const disk = new DiskState(process.env['DISK_SHIM_STATE'] ?? '');
const writeNote = notesOn(openSync(process.env['DISK_SHIM_NOTES'] ?? '', 'w'));
const expectation = new Expectation();
const seen = { failures: 0, refused: 0, succeeded: 0, restarts: 0, reopened: 0 };
const errors: Record<string, number> = {};
const docIds = ['a', 'b', 'c', 'd', 'e', 'f'];
let numbers = Number(seed) * 1_000_000;
let host: Host;
let stage: Stage;
/** Between a stop and a start that went well there is neither. */
let isOpen = false;
await start();

interface Deed {
  readonly prepare?: () => Promise<unknown>;
  readonly work: () => Promise<unknown>;
  /** A start ends with the reason; a request is refused with 503. */
  readonly starts?: boolean;
  /** It writes only what no answer needs, so it is never refused. */
  readonly answers?: boolean;
}

const deeds: Readonly<Record<string, Deed>> = {
  upsert: { prepare: () => upsert(1), work: () => upsert(3) },
  'upsert into a new segment': { prepare: () => stage.index().mergeAll(), work: () => upsert(2) },
  delete: { prepare: () => upsert(docIds.length), work: () => remove() },
  'usage of a search': { work: () => search() },
  seal: { prepare: () => stage.index().settled(), work: () => fillSegment() },
  merge: { prepare: () => fillSegment(), work: () => stage.index().mergeAll() },
  'index and tenant that come and go': { work: () => guest() },
  'a condition on a column': {
    prepare: () => prepareColumn(),
    work: () => stage.matching('{"uid":{"gte":0}}'),
    answers: true,
  },
  'opening an index': { work: () => stage.reopen() },
  restart: { prepare: () => nothingWaits(), work: () => restart(), starts: true },
  'a new directory': { work: () => newDirectory(), starts: true },
};

for (const [name, deed] of Object.entries(deeds)) {
  for (const errno of errnos.map(Number)) {
    for (const lasts of [false, true]) await failEach(name, deed, errno, lasts);
  }
}
await stop();
process.stdout.write(JSON.stringify({ ...seen, errors }));

async function failEach(name: string, deed: Deed, errno: number, lasts: boolean): Promise<void> {
  const step = Number(stride);
  for (let call = Math.floor(random() * step); ; call += step) {
    await deed.prepare?.();
    const first = disk.get('calls') + call;
    disk.set('failErrno', errno);
    disk.set('failFirst', first);
    disk.set('failEnd', lasts ? Number.MAX_SAFE_INTEGER : first + 1);
    const error = await attempt(deed.work);
    await settled();
    const failed = disk.get('calls') > first;
    disk.set('failEnd', 0);
    const what = `${name}, call ${call}, errno ${errno}${lasts ? ' from there on' : ''}`;
    try {
      if (deed.answers === true) assert.equal(error, undefined, inspect(error));
      if (error !== undefined && deed.starts !== true) assert.ok(isRefusal(error), inspect(error));
      await recover(error);
    } catch (problem) {
      throw new Error(what, { cause: problem });
    }
    if (!failed) return;
    seen.failures += 1;
  }
}

async function attempt(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
    seen.succeeded += 1;
    return undefined;
  } catch (error) {
    seen.refused += 1;
    return error;
  }
}

async function settled(): Promise<void> {
  if (isOpen) await stage.index().settled();
}

/** Nothing acknowledged is lost, and the service goes on; the refusal says that it may be tried again. */
async function recover(error: unknown): Promise<void> {
  noteError(error);
  if (!isOpen) await start();
  for (const background of stage.errors.splice(0)) noteError(background);
  assert.deepEqual(stage.corrupt, []);
  if (!stage.index().usable) {
    seen.reopened += 1;
    await stage.reopen();
  }
  await check();
  try {
    await upsert(1);
  } catch {
    // The catalog may need a start after a commit whose outcome it could not read, and the reserve of space has gone.
    await restart();
    seen.restarts += 1;
    await check();
    await upsert(1);
  }
  note({ what: 'refused', numbers: expectation.inFlight });
}

async function check(): Promise<void> {
  expectation.searchesAreSynced(expectation.searches);
  const inFlight = expectation.inFlight;
  await expectation.checkStage(stage);
  const happened = inFlight.filter((number) => !expectation.inFlight.includes(number));
  for (const number of happened) writeNote({ what: 'acknowledged', number, changed: true });
}

function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'service_unavailable';
}

function noteError(error: unknown): void {
  if (error === undefined) return;
  const { code } = error as { readonly code?: string };
  const kind = error instanceof ServiceError ? error.code : (code ?? inspect(error));
  errors[kind] = (errors[kind] ?? 0) + 1;
}

function note(taken: Note): void {
  writeNote(taken);
  expectation.take(taken);
}

async function run(kind: Operation['kind'], versions: Operation['versions'], work: () => Promise<boolean>) {
  const number = numbers++;
  note({ what: 'begun', operation: { number, kind, versions } });
  note({ what: 'acknowledged', number, changed: await work() });
}

async function upsert(count: number): Promise<void> {
  const first = Math.floor(random() * docIds.length);
  const versions = Array.from({ length: count }, (_, place) => ({
    docId: docIds[(first + place) % docIds.length] ?? '',
    uid: numbers++,
  }));
  await run('upsert', versions, async () => {
    await stage.upsert(versions.map(documentOf));
    return true;
  });
}

async function remove(): Promise<void> {
  const docId = docIds[Math.floor(random() * docIds.length)] ?? '';
  await run('delete', [{ docId, uid: 0 }], () => stage.remove(docId));
}

async function search(): Promise<void> {
  await run('search', [], async () => {
    await recordSearch(stage);
    return true;
  });
}

/** And a little of the next one: this one is sealed. */
async function fillSegment(): Promise<void> {
  for (let upserts = 0; upserts < 4; upserts += 1) await upsert(docIds.length);
  await stage.index().settled();
}

/** Leaves a segment with codes and without columns. */
async function prepareColumn(): Promise<void> {
  await upsert(docIds.length);
  const removeColumns = async (): Promise<void> => {
    for (const name of await columnsOf(stage)) await stage.blobs.remove(name);
  };
  await stage.reopen(removeColumns, { ...loadSettings, codesTokenVectorsMin: 1 });
  await stage.index().mergeAll();
  await stage.index().settled();
}

async function guest(): Promise<void> {
  await using visiting = await openStage(host, loadSettings);
  await visiting.upsert([documentOf({ docId: 'guest', uid: 0 })]);
  await host.catalog.deleteIndex(visiting.tenantId, visiting.indexId);
  await host.catalog.deleteTenant(visiting.tenantId);
}

async function stop(): Promise<void> {
  isOpen = false;
  await stage[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
}

async function start(): Promise<void> {
  host = await openHost(directory);
  try {
    stage = await openStage(host, loadSettings, expectation.ids);
  } catch (error) {
    await host[Symbol.asyncDispose]();
    throw error;
  }
  note({ what: 'opened', ids: { tenantId: stage.tenantId, indexId: stage.indexId } });
  isOpen = true;
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

/** Usage that waits in memory is lost with the process. */
async function nothingWaits(): Promise<void> {
  while (host.catalog.usageWaiting() > 0) await delay(20);
}

/** Begun with failures, it is made after all. */
async function newDirectory(): Promise<void> {
  const made = path.join(directory, `new-${numbers++}`);
  try {
    await (await openHost(made))[Symbol.asyncDispose]();
  } finally {
    disk.set('failEnd', 0);
    await (await openHost(made))[Symbol.asyncDispose]();
    await rm(made, { recursive: true });
  }
}
