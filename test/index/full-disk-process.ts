/**
 * Run by full-disk.test.ts under a soft limit on file sizes that segments keep within and merged ones do not:
 * fills an index, watches its merges fail, lifts the limit. Prints what it saw as JSON.
 */
import { execFileSync } from 'node:child_process';
import { dim, openHost, openStage, type Stage, type TestDocument } from '../support/stages/index-stage.ts';

const sealedSegmentsMax = 2;
const settings = { segmentTokenVectorsMax: 200_000, sealedSegmentsMax, codesTokenVectorsMin: Infinity };

await using host = await openHost();
await using stage = await openStage(host, { ...settings, sealedSegmentsMax: 100 });
/** About 400 KiB: five fill a segment of 2 MiB. */
const document = (docId: string): TestDocument => ({
  docId,
  metadata: {},
  chunks: [Array.from({ length: 40_000 }, (_row, place) => Array.from({ length: dim }, () => place % 128))],
});
for (let place = 0; place < 40; place += 1) await stage.upsert([document(`d${place}`)]);
await stage.index().settled();
const documents = await count(stage);

await stage.reopen(undefined, settings);
await stage.index().settled();
const codes = stage.errors.splice(0).map((error) => (error as { readonly code?: string }).code);
const full = { codes, documents: await count(stage), ...(await files(stage)) };
await stage.upsert([document('one more')]);
const whileFull = { ...full, upserted: (await count(stage)) === documents + 1 };

execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited']);
await stage.index().maintain();
const afterwards = {
  documents: await count(stage),
  ...(await files(stage)),
  errors: stage.errors.length,
};
process.stdout.write(JSON.stringify({ documents, whileFull, afterwards }));

async function count(of: Stage): Promise<number> {
  return (await of.search()).length;
}

async function files(
  of: Stage,
): Promise<{ readonly blobsAsInLedger: boolean; readonly withinBound: boolean }> {
  const blobs = await of.blobs.list(`${of.indexId}/`);
  const { segments } = await of.catalog.loadIndexState(of.indexId);
  const named = segments.map(({ blob }) => blob);
  const kept = blobs.map(({ name }) => name.replace(/\.postings$/, ''));
  const sealed = of
    .index()
    .statistics()
    .segments.filter(({ state }) => state === 'sealed').length;
  return {
    blobsAsInLedger: JSON.stringify([...new Set(kept)].toSorted()) === JSON.stringify(named.toSorted()),
    withinBound: sealed <= sealedSegmentsMax,
  };
}
