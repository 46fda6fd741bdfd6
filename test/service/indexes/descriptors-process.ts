/**
 * Run by descriptors.test.ts under a low limit on open files. It takes all descriptors but a few, sends requests, and gives the
 * descriptors back. It prints the answers as JSON.
 */
import { closeSync, openSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ServiceError } from '../../../src/errors.ts';
import { documentsOf, openServiceStage, type TenantStage } from '../../support/stages/service-stage.ts';

/** One more than any operation opens by itself. */
const sparesMax = 4;

const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-descriptors-'));
const before = await openServiceStage(directory);
const tenant = await before.newTenant();
const stored = await Promise.all(Array.from({ length: 2 * sparesMax }, () => indexOf(tenant)));
await before.service.drain();

await using stage = await openServiceStage(directory);
const outcomes: Record<string, string[]> = {};
/** The documents whose upserts were answered. */
const acknowledged = new Map(stored.map((id) => [id, ['a']]));
for (let spare = 0; spare < sparesMax; spare += 1) {
  const [closed = '', other = ''] = stored.slice(2 * spare);
  const empty = (
    await stage.service.createIndex(tenant.context(), { name: `empty ${spare}`, metadataSchema: '{}' })
  ).id;
  acknowledged.set(empty, []);
  const taken = takeAllBut(spare);
  await attempt('search', () => search(closed));
  for (const id of [empty, other]) {
    await attempt('upsert', async () => {
      await stage.service.upsertDocuments(tenant.context(), id, documentsOf({ b: 'blue' }));
      acknowledged.get(id)!.push('b');
    });
  }
  await attempt('delete', () => stage.service.deleteDocument(tenant.context(), other, 'none'));
  await attempt('usage', () => stage.service.usage(tenant.context()));
  for (const descriptor of taken) closeSync(descriptor);
}

let asAcknowledged = true;
for (const [id, documents] of acknowledged) {
  const found = (await search(id)).results.map(({ docId }) => docId).toSorted();
  asAcknowledged &&= JSON.stringify(found) === JSON.stringify(documents);
}
const damaged = (await stage.catalog.listIndexes(tenant.tenant.id)).filter(
  ({ status }) => status !== 'ready',
);
process.stdout.write(JSON.stringify({ outcomes, asAcknowledged, damaged: damaged.length }));

async function indexOf({ createIndex, upsert }: TenantStage): Promise<string> {
  const id = await createIndex();
  await upsert(id, { a: 'red' });
  return id;
}

function search(id: string) {
  return stage.service.search(tenant.context(), id, { query: 'red blue', returnComponents: false });
}

function takeAllBut(spare: number): number[] {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    for (const descriptor of taken.splice(0, spare)) closeSync(descriptor);
    return taken;
  }
}

async function attempt(name: string, work: () => Promise<unknown>): Promise<void> {
  let outcome = 'answered';
  try {
    await work();
  } catch (error) {
    const known = error instanceof ServiceError && error.retryAfterSeconds !== undefined;
    outcome = known ? error.code : String(error);
  }
  const seen = (outcomes[name] ??= []);
  if (!seen.includes(outcome)) seen.push(outcome);
}
