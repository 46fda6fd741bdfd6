/**
 * `SEED COUNT DIRECTORY [ADDON]`: calls the methods of the addon so often with arguments that no caller of ours gives:
 * values of any type at any place, getters that close handles or take the memory of arrays given beside them, several calls
 * at once. ADDON is the file of another build. Prints counts as JSON when all have settled and a search answers as before.
 */
import path from 'node:path';
import { createEngine, type NativeSearchRun } from '../../../src/index/engine/native.ts';
import { createRandom } from '../../support/running/random.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { Clusters, columns, noLifespans, term } from '../sample.ts';

const codes = new Set(
  'invalid_argument closed io no_space no_memory corrupt unsupported_version deadline_exceeded absent'.split(
    ' ',
  ),
);
const ours = 'thrown by a getter';
const pendingMax = 40;
const dim = 8;

type Call = readonly [method: string, args: readonly unknown[]];
type Handle = Record<string, (...args: readonly unknown[]) => unknown>;

const [seed = 0, count = 0] = process.argv.slice(2, 4).map(Number);
const [directory = '', addon] = process.argv.slice(4);
const random = createRandom(seed);
const clusters = new Clusters(seededRandom(seed), dim, 5);
const tally = { thrown: 0, rejected: 0, answered: 0 };
const pending = new Set<Promise<void>>();
let files = 0;

const newPath = (): string => path.join(directory, `${(files += 1)}.seg`);
const newEngine = () => createEngine({ threads: 2, kernel: 'auto' }, addon);
let engine = newEngine();
let index = await newIndex();
/** The last one that was begun. */
let search = index.beginSearch(clusters.search(1));

for (let call = 0; call < count; call += 1) {
  const at = random.next();
  if (at < 0.005) engine.close();
  if (at < 0.02) {
    index.close();
    if (at < 0.005) engine = newEngine();
    index = await newIndex();
  }
  const kind = random.pick(['index', 'index', 'index', 'index', 'search', 'engine'] as const);
  const handle = { index, search, engine }[kind] as unknown as Handle;
  const calls = { index: indexCalls, search: searchCalls, engine: engineCalls }[kind];
  const [method, sound] = random.pick(calls());
  run(handle, method, hostile(sound));
  if (pending.size >= pendingMax) await Promise.race(pending);
}
await Promise.all(pending);
index.close();
const last = await newIndex();
const found = await last.search(clusters.search(1, { topK: 3 }));
if (found.versionIds.length !== 3) throw new Error('a search does not answer any more');
engine.close();
console.log(JSON.stringify({ ...tally, residentMiB: Math.round(process.memoryUsage.rss() / 2 ** 20) }));

/** Segment 1 is sealed with codes and postings, 2 active. */
async function newIndex() {
  const made = engine.createIndex({ dim, exactTokenVectorsMax: 0 });
  await made.createSegment(1, newPath());
  await made.createSegment(2, newPath());
  for (let version = 1; version <= 4; version++) {
    await made.append(1, clusters.record(version, [2, 1], term(version)));
    await made.append(2, clusters.record(10 + version, [1]));
  }
  await made.seal(1);
  await made.buildCodes(1);
  made.publish(1, columns(1, [0, 1, 2, 3]), noLifespans);
  return made;
}

/** A file of some index as one of which something has come. */
function partialCopy(): object {
  const file = path.join(directory, `${random.integer(1, files)}.seg`);
  return {
    path: file,
    partBytes: random.integer(1, 4096),
    parts: new Uint8Array(random.integer(1, 99)).fill(255),
  };
}

function indexCalls(): readonly Call[] {
  const lifespans = { versionIds: Float64Array.of(1), born: Float64Array.of(1), died: Float64Array.of(0) };
  return [
    ['createSegment', [random.integer(3, 9), newPath()]],
    ['openSegment', [random.integer(3, 9), newPath(), { recordsReferenced: 0, sealed: false }]],
    [
      'openSegment',
      [random.integer(3, 9), newPath(), { recordsReferenced: 4, sealed: true, partial: partialCopy() }],
    ],
    ['addParts', [random.integer(1, 9), new Uint8Array(1)]],
    ['append', [2, clusters.record(random.integer(0, 99), [2, 3], term(1))]],
    ['sync', [2]],
    ['seal', [random.integer(3, 9)]],
    ['buildCodes', [1]],
    ['buildPostings', [1]],
    ['copyRecords', [1, Uint32Array.of(0, 1), 2]],
    ['readRecord', [random.integer(1, 2), random.integer(0, 3)]],
    ['dropSegment', [random.integer(3, 9)]],
    ['loadLifespans', [{ ...columns(1, [0]), ...lifespans }]],
    ['copyLifespans', [1, Uint32Array.of(0), 2, 0]],
    ['recordsSeenSince', [1, 1]],
    ['publish', [random.integer(2, 1000), columns(2, [0]), noLifespans]],
    ['search', [clusters.search(1, { filterTerms: term(1), components: true })]],
    ['beginSearch', [clusters.search(1, { filterTerms: term(1), components: true })]],
    ['search', [clusters.search(1, { match: { ...spans(), bonuses: Float32Array.of(1, 2) } })]],
    ['countSpans', [{ generation: 1, timeoutMs: 1_000, filterTerms: term(1), ...spans() }]],
    ['recordsWithoutValues', [1, 1, { fields: ['"a"'] }]],
    ['addValues', [1, { fields: ['"a"'] }, Uint32Array.of(0, 1), ['{"a":1}', '{}']]],
    ['saveValues', [1, { fields: ['"a"'] }]],
    ['copyValues', [1]],
    ['dropValues', [random.integer(1, 9)]],
    ['verifyRecord', [1, 0]],
    ['segments', []],
  ];
}

function spans() {
  return { terms: Uint8Array.of(...term(1), ...term(2), ...term(3)), termCounts: Uint32Array.of(2, 1) };
}

function searchCalls(): readonly Call[] {
  return [
    ['next', [0.001]],
    ['next', [50]],
    ['close', []],
  ];
}

function engineCalls(): readonly Call[] {
  const { query, offsets } = clusters.search(1);
  const { chunkRows, vectors, scales } = clusters.record(1, [3, 2]);
  const score = [
    { query, offsets, dim, components: true },
    { chunkRows, vectors, scales },
  ];
  return [
    ['memory', []],
    ['createIndex', [{ dim, exactTokenVectorsMax: 0 }]],
    ['score', score],
    ['kernelCalls', []],
    ['timeKernel', [...score, Uint32Array.of(1, 0), 2]],
    ['inspectSegment', [newPath(), { recordsReferenced: 0, firstRecord: 0, verifyBytesMax: 1 }]],
    ['inspectCodes', [newPath(), true]],
    ['inspectPostings', [newPath(), true]],
    ['inspectColumn', [newPath(), true]],
  ];
}

function run(handle: Handle, method: string, args: unknown[]): void {
  let answer: unknown;
  try {
    answer = handle[method]!.apply(random.next() < 0.01 ? {} : handle, args);
  } catch (error) {
    tally.thrown += 1;
    check(method, error);
    return;
  }
  if (!(answer instanceof Promise)) {
    tally.answered += 1;
    if (method === 'beginSearch') search = answer as NativeSearchRun;
    return;
  }
  const settled = answer.then(
    () => void (tally.answered += 1),
    (error: unknown) => {
      tally.rejected += 1;
      check(method, error);
    },
  );
  pending.add(settled);
  void settled.finally(() => pending.delete(settled));
}

/** An error with a code, what a getter threw, or what Node says of a method that is called of something else. */
function check(method: string, error: unknown): void {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  if (error === ours || codes.has(code ?? '') || message === 'Illegal invocation') return;
  throw new Error(`${method} failed by ${String(error)}`, { cause: error });
}

/** Sound arguments with one to three places changed, or too few of them. */
function hostile(sound: readonly unknown[]): unknown[] {
  const args = sound.map((argument) =>
    typeof argument === 'object' && argument !== null && !ArrayBuffer.isView(argument)
      ? { ...argument }
      : argument,
  );
  for (let changes = random.integer(0, 3); changes > 0; changes -= 1) {
    const place = random.integer(0, args.length);
    const argument = args[place];
    if (typeof argument === 'object' && argument !== null && !ArrayBuffer.isView(argument)) {
      const key = random.pick([...Object.keys(argument), 'another']);
      Object.assign(argument, { [key]: instead((argument as Record<string, unknown>)[key]) });
    } else args[place] = instead(argument);
  }
  for (const argument of args) {
    if (random.next() > 0.2 || Object.prototype.toString.call(argument) !== '[object Object]') continue;
    const object = argument as Record<string, unknown>;
    if (object !== (index as unknown)) defineTrap(object, random.pick([...Object.keys(object), 'another']));
  }
  return random.next() < 0.05 ? args.slice(1) : args;
}

/** For an array often one of nearly its length, which only a check of the length tells from it. */
function instead(value: unknown): unknown {
  if (!isArray(value) || random.next() < 0.5) return strange();
  const Kind = value.constructor as Uint8ArrayConstructor;
  const changed = new Kind(Math.max(0, value.length + random.integer(-4, 4)));
  changed.set(value.subarray(0, changed.length));
  return changed;
}

/** An array whose values can be read. */
function isArray(value: unknown): value is Uint8Array {
  if (!ArrayBuffer.isView(value) || value instanceof DataView) return false;
  return !(value.buffer instanceof ArrayBuffer && value.buffer.detached);
}

/** A property that, when it is read, takes the memory of the arrays beside it, closes handles, or throws. */
function defineTrap(object: Record<string, unknown>, key: string): void {
  const value = object[key];
  const kind = random.integer(0, 3);
  for (const [name, array] of Object.entries(object)) {
    if (!isArray(array) || kind > 1) continue;
    const Kind = array.constructor as Uint8ArrayConstructor;
    const buffer = new ArrayBuffer(array.byteLength, { maxByteLength: Math.max(65_536, array.byteLength) });
    const copy = new Kind(buffer);
    copy.set(array);
    Object.defineProperty(object, name, { value: copy, enumerable: true, configurable: true });
  }
  const beside = Object.values(object).filter((array) => ArrayBuffer.isView(array));
  Object.defineProperty(object, key, {
    enumerable: true,
    configurable: true,
    get: () => {
      for (const { buffer } of beside) {
        if (!(buffer instanceof ArrayBuffer) || buffer.detached) continue;
        if (kind === 0 && buffer.resizable) buffer.resize(0);
        if (kind === 1) buffer.transfer();
      }
      if (kind === 2) index.close();
      if (kind === 3) throw ours;
      return value;
    },
  });
}

function strange(): unknown {
  const detached = new Float32Array(8);
  structuredClone(detached, { transfer: [detached.buffer] });
  const length = random.integer(0, 40);
  const arrays = [Uint8Array, Int8Array, Uint16Array, Uint32Array, Float32Array, Float64Array, BigInt64Array];
  return random.pick<() => unknown>([
    () => undefined,
    () => null,
    () => random.pick([NaN, -0, -1, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, Infinity, 1e308, 3, 8, 1024, 1025]),
    () => random.pick(['', 'a', '\0', 'a\0b', '/', '\ud800', '/proc/self/mem', 'x'.repeat(5000), directory]),
    () =>
      random.pick<unknown>([
        true,
        10n,
        Symbol('s'),
        () => 1,
        new Date(),
        /x/,
        [],
        [1, 2],
        {},
        new Proxy({}, {}),
      ]),
    () => new (random.pick(arrays))(length),
    () => new Uint32Array(new SharedArrayBuffer(4 * length)),
    () => new Float32Array(new SharedArrayBuffer(4 * length)),
    () => new Float32Array(length).fill(random.pick([NaN, Infinity, 1e38])),
    () => new Uint32Array(length).fill(random.pick([0, 1, 2 ** 32 - 1, 2 ** 31])),
    () => detached,
    () => new DataView(new ArrayBuffer(length)),
    () => index,
    () => new Proxy({ dim, components: true }, { get: () => strange() }),
  ])();
}
