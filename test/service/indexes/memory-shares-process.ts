/** A process of its own, because the bound of the memory is one of the process. Runs the scenario that its argument names. */
import assert from 'node:assert/strict';
import { createEngine } from '../../../src/index/engine/native.ts';
import { eventually } from '../../support/running/eventually.ts';
import { openServiceStage, rejection, type TenantStage } from '../../support/stages/service-stage.ts';

await using stage = await openServiceStage();
const [name = ''] = process.argv.slice(2);
const scenarios: Readonly<Record<string, () => Promise<void>>> = { columns, manyIndexes, places, largeIndex };
await scenarios[name]!();

/** Columns of one tenant take all memory. It is given to every other tenant, and to that one again. */
async function columns(): Promise<void> {
  const attacker = await stage.newTenant();
  const numbers = await fillNumbers(attacker);
  const victim = await stage.newTenant();
  const stored = await newIndex(victim);
  // Forty thousand values need more.
  setBound(takenBytes() + 200_000);
  for (let round = 0; round < 3; round += 1) {
    const attack = rejection(containing(attacker, numbers, 'n', 1_004_000));
    assert.equal((await found(victim, stored)).length, round + 1);
    await victim.upsert(stored, { [`more ${round}`]: 'word' });
    assert.deepEqual(await found(victim, await newIndex(victim)), ['a']);
    assertRefused(await attack);
    // A smaller question is answered, also when other columns were there before.
    assert.deepEqual(await containing(attacker, numbers, 'few', 7), ['d7']);
    await attacker.upsert(numbers, { more: 'word' });
  }
  setBound(Number.MAX_SAFE_INTEGER);
  assert.deepEqual(await containing(attacker, numbers, 'n', 1_004_000), ['d2']);
}

/** Room for a tenant that opens many indexes comes from its own idle ones, also when another comes. */
async function manyIndexes(): Promise<void> {
  const many = await stage.newTenant();
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1) ids.push(await newIndex(many));
  // Room for two of them.
  setBound(Math.floor(takenBytes() / 2));
  for (const id of [...ids, ...ids]) assert.deepEqual(await found(many, id), ['a']);
  assert.ok(takenBytes() <= stage.engine.memory().mostBytes);
  assert.ok(stage.service.statistics().repeats.memory > 0);
  const other = await stage.newTenant();
  const own = await newIndex(other);
  for (const id of [...ids, ...ids]) {
    assert.deepEqual(await found(many, id), ['a']);
    assert.deepEqual(await found(other, own), ['a']);
  }
}

/** A tenant that opens more indexes than may be open closes its own. Another keeps its columns. */
async function places(): Promise<void> {
  const victim = await stage.newTenant();
  const numbers = await fillNumbers(victim);
  assert.deepEqual(await containing(victim, numbers, 'n', 1_004_000), ['d2']);
  const kept = bytesOf(victim);
  const attacker = await stage.newTenant();
  for (let index = 0; index < 262; index += 1) await newIndex(attacker);
  assert.equal(stage.service.statistics().openIndexes, 256);
  assert.equal(bytesOf(victim), kept);
}

/** An index that takes more than the share of its tenant gives way to another tenant, until that one is idle. */
async function largeIndex(): Promise<void> {
  const big = await stage.newTenant();
  const large = await newIndex(big);
  for (let part = 0; part < 4; part += 1) {
    const names = Array.from({ length: 40 }, (_, document) => `${part} ${document}`);
    await big.upsert(large, Object.fromEntries(names.map((docId) => [docId, 'word'])));
  }
  setBound(takenBytes());
  const other = await stage.newTenant();
  const small = await newIndex(other);
  await eventually(() => bytesOf(big) === 0);
  assertRefused(await rejection(found(big, large)));
  assert.deepEqual(await found(other, small), ['a']);
  stage.clock.ms += 299_000;
  assertRefused(await rejection(found(big, large)));
  stage.clock.ms += 1_000;
  assert.equal((await found(big, large)).length, 10);
}

function setBound(memoryBytes: number): void {
  createEngine({ threads: 1, kernel: 'auto', memoryBytes }).close();
}

function takenBytes(): number {
  return stage.engine.memory().takenBytes;
}

function bytesOf({ tenant }: TenantStage): number {
  return stage.engine.memoryOwners().find(({ owner }) => owner === tenant.id)?.takenBytes ?? 0;
}

/** An open index with one document. */
async function newIndex(tenant: TenantStage): Promise<string> {
  const indexId = await tenant.createIndex();
  await tenant.upsert(indexId, { a: 'word' });
  return indexId;
}

/** An index with many values in `n` and few in `few`. */
async function fillNumbers(tenant: TenantStage): Promise<string> {
  const indexId = await tenant.createIndex();
  for (let document = 0; document < 20; document += 1) {
    const n = Array.from({ length: 2_000 }, (_, place) => 1_000_000 + document * 2_000 + place);
    const metadata = JSON.stringify({ n, few: [document] });
    const documents = [{ docId: `d${document}`, text: 'word', metadata }];
    await stage.service.upsertDocuments(tenant.context(), indexId, documents);
  }
  return indexId;
}

async function found(tenant: TenantStage, indexId: string): Promise<readonly string[]> {
  return (await tenant.search(indexId, 'word')).results.map(({ docId }) => docId);
}

async function containing(
  tenant: TenantStage,
  indexId: string,
  field: string,
  number: number,
): Promise<readonly string[]> {
  const where = JSON.stringify({ [field]: { contains: number } });
  return (await tenant.search(indexId, 'word', { where })).results.map(({ docId }) => docId);
}

function assertRefused(error: unknown): void {
  const { code, httpStatus, retryAfterSeconds } = error as Readonly<Record<string, unknown>>;
  const refusal = { code: 'service_unavailable', httpStatus: 503, retryAfterSeconds: 30 };
  assert.deepEqual({ code, httpStatus, retryAfterSeconds }, refusal);
}
