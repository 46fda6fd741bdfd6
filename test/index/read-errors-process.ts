/**
 * Run by unread-records.test.ts on a disk that fails to read some bytes, and then all, of its segments: what
 * verification makes of it. Prints what it saw as JSON.
 */
import { open, readFile } from 'node:fs/promises';
import {
  blobsOf,
  docIds,
  documentAt,
  openHost,
  openStage,
  type Stage,
} from '../support/stages/index-stage.ts';

const recordMagic = 'MXRC';

interface Seen {
  readonly corrupt: number;
  readonly errors: readonly string[];
  readonly found: readonly string[] | 'refused';
}

await using host = await openHost();

/** A sealed segment with the records of a, b and c, of which `removed` is dead. */
async function sealedStage(removed?: string): Promise<Stage> {
  const stage = await openStage(host, { segmentTokenVectorsMax: 3 });
  await stage.upsert(['a', 'b', 'c'].map((docId, place) => documentAt(docId, place)));
  await stage.index().settled();
  if (removed !== undefined) await stage.remove(removed);
  return stage;
}

async function look(stage: Stage): Promise<Seen> {
  await stage.index().verified();
  const errors = stage.errors.splice(0).map((error) => (error as Error).message.replace(/.*\.seg: /, ''));
  return { corrupt: stage.corrupt.length, errors, found: await docIds(stage).catch(() => 'refused') };
}

/** Sets the state of these bytes in every segment, as disk-shim.cpp describes it. */
async function setUnreadable(first: number, end: number): Promise<void> {
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64LE(BigInt(first), 0);
  bytes.writeBigInt64LE(BigInt(end), 8);
  await using state = await open(process.env['DISK_SHIM_STATE'] ?? '', 'r+');
  await state.write(bytes, 0, bytes.length, 16);
}

/** The place of b's record. */
async function secondRecord(stage: Stage): Promise<readonly [first: number, end: number]> {
  const [blob = ''] = await blobsOf(stage);
  const bytes = await readFile(await stage.blobs.open(blob));
  const first = bytes.indexOf(recordMagic, bytes.indexOf(recordMagic) + 1);
  return [first, bytes.indexOf(recordMagic, first + 1)];
}

const seen: Record<string, Seen> = {};
for (const [name, removed] of [
  ['alive', undefined],
  ['dead', 'b'],
] as const) {
  await using stage = await sealedStage(removed);
  await setUnreadable(...(await secondRecord(stage)));
  seen[name] = await look(stage);
  await setUnreadable(0, 0);
}
await using stage = await sealedStage();
await setUnreadable(0, Number.MAX_SAFE_INTEGER);
seen['away'] = await look(stage);
await setUnreadable(0, 0);
seen['back'] = await look(stage);
process.stdout.write(JSON.stringify(seen));
