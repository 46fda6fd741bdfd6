/**
 * Run by power-cut.test.ts on a logged disk: load on an index with upkeep beside it, while a guest tenant comes, is
 * written to and goes. Arguments: directory, seed, operations, and the ids of the index if there is one.
 */
import { openSync } from 'node:fs';
import { removeBlobs } from '../../../src/index/storage/blob-store.ts';
import { openHost, openStage } from '../../support/stages/index-stage.ts';
import { documentOf, loadSettings, notesOn, writeLoad, type StageIds } from './load.ts';

const [directory = '', seed = '', operations = '', tenantId, indexId] = process.argv.slice(2);
const note = notesOn(openSync(process.env['DISK_SHIM_NOTES'] ?? '', 'w'));
const known = tenantId === undefined || indexId === undefined ? undefined : { tenantId, indexId };

await using host = await openHost(directory);
await using stage = await openStage(host, loadSettings, known);
note({ what: 'opened', ids: idsOf(stage) });
const loading = new AbortController();
const load = writeLoad(stage, { seed: Number(seed), operations: Number(operations), note }).finally(() => {
  loading.abort();
});
await Promise.all([load, upkeep(), guest()]);
if (stage.errors.length > 0) throw new AggregateError(stage.errors);

async function upkeep(): Promise<void> {
  for (let round = 1; !loading.signal.aborted; round += 1) {
    await (round % 4 === 0 ? stage.index().mergeAll() : stage.index().maintain());
    await stage.index().settled();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function guest(): Promise<void> {
  while (!loading.signal.aborted) {
    const ids = await visit();
    await host.catalog.deleteTenant(ids.tenantId);
    note({ what: 'guest', ids, state: 'gone' });
    await removeBlobs(host.blobs, `${ids.indexId}/`);
  }
}

async function visit(): Promise<StageIds> {
  await using visiting = await openStage(host, loadSettings);
  const ids = idsOf(visiting);
  const versions = Array.from({ length: 6 }, (_, place) => ({ docId: `guest-${place}`, uid: place }));
  await visiting.upsert(versions.map(documentOf));
  note({ what: 'guest', ids, state: 'there' });
  await visiting.upsert(versions.map(documentOf));
  note({ what: 'guest', ids, state: 'leaving' });
  return ids;
}

function idsOf(ids: StageIds): StageIds {
  return { tenantId: ids.tenantId, indexId: ids.indexId };
}
