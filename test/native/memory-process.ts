/**
 * A process whose engine may keep little memory: the bound is one of the process. Prints what the engine had of it, and what
 * the system says of the process, after each step.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createEngine, type NativeIndex } from '../../src/index/engine/native.ts';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from './sample.ts';

const dim = 32;
const [segments, documents, rows] = [3, 400, 40];
using directory = temporaryDirectory();
const clusters = new Clusters(seededRandom(3), dim, 200);
const searches = Array.from({ length: 10 }, () => clusters.search(segments));
const unbounded = createEngine({ threads: 2, kernel: 'auto', memoryBytes: 2 ** 40 });
const index = unbounded.createIndex({ dim, exactTokenVectorsMax: 1 });
const records = Array.from({ length: documents }, (_, record) => record);
for (let id = 1; id <= segments; id++) {
  await index.createSegment(id, fileOf(id));
  for (const record of records) await index.append(id, clusters.record(id * documents + record, [rows]));
  await index.seal(id);
  index.publish(id, columns(id, records), noLifespans);
}
const opened = note('open');

// No room to build: chunks are scored exactly until there is.
setBound(opened.takenBytes + 10_000);
note('no room to build', { refused: await codeOf(index.buildCodes(1)), plans: await plansOf(index) });
setBound(2 ** 40);
for (let id = 1; id <= segments; id++) await index.buildCodes(id);
const built = note('built', { plans: await plansOf(index) });

// Room for the codes of one segment in three.
setBound(built.takenBytes + Math.ceil(built.codesBytes / 2));
note('half of the codes', { plans: await plansOf(index) });

// None for codes, nor for another segment's directory.
setBound(built.takenBytes);
const other = unbounded.createIndex({ dim, exactTokenVectorsMax: 1 });
const openOther = () => other.openSegment(1, fileOf(1), { recordsReferenced: documents, sealed: true });
await index.createSegment(9, fileOf(9));
note('no room', {
  opened: await codeOf(openOther()),
  appended: await codeOf(index.append(9, clusters.record(9_000, [rows]))),
  plans: await plansOf(index),
});
setBound(2 ** 40);
note('room again', { opened: await codeOf(openOther()) });
index.close();
other.close();
unbounded.close();
note('closed');

function fileOf(id: number): string {
  return path.join(directory.path, `${id}.seg`);
}

/** It is one of the process: another engine sets it. */
function setBound(memoryBytes: number): void {
  createEngine({ threads: 1, kernel: 'auto', memoryBytes }).close();
}

function note(step: string, more: object = {}) {
  const memory = engineMemory();
  const [, locked = '0'] = /^VmLck:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  process.stdout.write(
    `${JSON.stringify({ step, ...memory, lockedBytes: Number(locked) * 1024, ...more })}\n`,
  );
  return memory;
}

function engineMemory() {
  const engine = createEngine({ threads: 1, kernel: 'auto' });
  try {
    return engine.memory();
  } finally {
    engine.close();
  }
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
}

/** How searches were answered, and whether with what all chunks scored exactly give. */
async function plansOf(searched: NativeIndex): Promise<readonly string[]> {
  const plans = new Set<string>();
  for (const search of searches) {
    const { plan, versionIds } = await searched.search(search);
    const exact = await searched.search({ ...search, plan: 'exact' });
    plans.add(`${plan}, ${versionIds[0] === exact.versionIds[0] ? 'the best' : 'another'}`);
  }
  return [...plans];
}
