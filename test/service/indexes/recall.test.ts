/** Searches that are measured, on the real service and engine: they cost nobody anything, and their failure harms no search. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { prepareDataDirectory } from '../../../src/catalog/data-directory.ts';
import { parseConfig } from '../../../src/app/config.ts';
import { directoryIndexes } from '../../../src/cli/index/directory-indexes.ts';
import { inspectIndexes } from '../../../src/cli/index/index-inspect.ts';
import { verifyIndexes } from '../../../src/cli/index/index-verify.ts';
import { createEngine, type NativeSearch, type NativeSearchRun } from '../../../src/index/engine/native.ts';
import { defaultRecallSettings } from '../../../src/index/recall/measuring.ts';
import { FairQueue } from '../../../src/service/limits/fair-queue.ts';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import { withIndexes } from '../../support/stages/index-stage.ts';
import { openServiceStage } from '../../support/stages/service-stage.ts';

const texts = Object.fromEntries(
  Array.from({ length: 400 }, (_, place) => [
    `d${place}`,
    Array.from({ length: 8 }, (_word, word) => `w${(place * (word + 3)) % 97}`).join(' '),
  ]),
);
const settings = { segmentTokenVectorsMax: 3_000, codesTokenVectorsMin: 100 };
const soon = { interval: 2 };
const measuresAll = { ...defaultRecallSettings, share: 1, shareOfNew: 1, load: Infinity };

it('a measured search is charged once, and counts once among the plans', async () => {
  await using stage = await openServiceStage(
    undefined,
    { ...settings, recall: measuresAll },
    { exactTokenVectorsMax: 1 },
  );
  const { context, createIndex, upsert, search } = await stage.newTenant();
  const id = await createIndex();
  const { inferred } = stage.encoder;
  const recall = async () => (await stage.service.getIndex(context(), id)).recall;
  await upsert(id, texts);
  await expect
    .poll(() => stage.service.statistics().segments.some(({ centroids }) => centroids > 0))
    .toBe(true);
  expect(await recall()).toBeUndefined();
  const before = inferred.length;
  await search(id, 'w1 w2 w3');
  await expect.poll(recall).toMatchObject({ comparisons: 1, at10: { mean: expect.any(Number) as number } });
  expect(inferred.length - before).toBe(1);
  const { usage } = await stage.service.usage(context());
  expect(usage.searches).toBe(1);
  const { plans, recalls } = stage.service.statistics();
  expect(Object.values(plans).reduce((sum, count) => sum + count, 0)).toBe(1);
  expect(recalls).toMatchObject([{ indexId: id, comparisons: 1 }]);
  expect(stage.errors).toEqual([]);
});

/** A directory with an index of which 25 searches were measured. */
async function measuredDirectory() {
  const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-recall-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await prepareDataDirectory(directory);
  const open = () =>
    openServiceStage(directory, { ...settings, recall: measuresAll }, { exactTokenVectorsMax: 1 });
  const first = await open();
  const tenant = await first.newTenant();
  const id = await tenant.createIndex();
  const reportOf = async ({ service }: typeof first) => (await service.getIndex(tenant.context(), id)).recall;
  await tenant.upsert(id, texts);
  await expect
    .poll(() => first.service.statistics().segments.some(({ centroids }) => centroids > 0))
    .toBe(true);
  for (let count = 1; count <= 25; count += 1) {
    await tenant.search(id, `w${count} w2 w3`);
    await expect.poll(async () => (await reportOf(first))?.comparisons, soon).toBe(count);
  }
  return {
    directory,
    open,
    first,
    ...tenant,
    id,
    reportOf,
    file: path.join(directory, 'segments', id, 'recall.json'),
  };
}

it('what was measured is known after a restart, and an inspection shows it', async () => {
  const { directory, open, first, tenant, context, id, reportOf } = await measuredDirectory();
  const known = await reportOf(first);
  const [row] = await first.catalog.listIndexes(tenant.id);
  const { catalog, engine } = first;
  const stored = directoryIndexes(catalog, await openLocalBlobStore(path.join(directory, 'segments')));
  const access = { catalog, engine, stored, rows: [row!], exactTokenVectorsMax: 1 };
  // It is saved soon after it was measured.
  await expect
    .poll(async () => (await inspectIndexes(access, undefined)).text, soon)
    .toContain('from 25 searches');
  expect((await inspectIndexes(access, undefined)).document).toMatchObject({
    data: [{ recall: { searches: 25, breadth: known!.breadth } }],
  });
  await first.service.drain();
  await using second = await open();
  expect(await reportOf(second)).toBeUndefined();
  await second.service.search(context(), id, { query: 'w1', returnComponents: false });
  await expect.poll(async () => (await reportOf(second))?.comparisons).toBe(26);
  expect(second.errors).toEqual([]);
});

it('a damaged file of what was measured is found by a verification, said once, and measured anew', async () => {
  const { directory, open, first, context, id, reportOf, file } = await measuredDirectory();
  await first.service.drain();
  const verify = () => verifyIndexes(parseConfig({ MAXSIMD_DATA_DIR: directory }), { index: undefined });
  const { data } = JSON.parse(await readFile(file, 'utf8')) as { readonly data: object };
  expect(await verify()).toMatchObject({ failed: false });
  for (const damaged of [
    (await readFile(file, 'utf8')).replace('at10', 'au10'),
    // A file of an earlier release.
    JSON.stringify(data).replace('at10', 'au10'),
    JSON.stringify({ ...data, comparisons: [null] }),
  ]) {
    await writeFile(file, damaged);
    expect(await verify()).toMatchObject({
      document: {
        problems: [{ index_id: id, file: `${id}/recall.json`, problem: expect.stringContaining('damaged') }],
      },
    });
    const stage = await open();
    // After 25 comparisons it looks at the breadth.
    const measure = async (): Promise<number> => {
      await stage.service.search(context(), id, { query: 'w1 w2', returnComponents: false });
      return (await reportOf(stage))?.comparisons ?? 0;
    };
    await expect.poll(measure, soon).toBeGreaterThan(26);
    expect((await reportOf(stage))?.breadth).toBeGreaterThan(0);
    expect(stage.errors.map(String)).toEqual([expect.stringContaining('recall.json is damaged')]);
    await stage.service.drain();
    expect(await verify()).toMatchObject({ failed: false });
  }
});

/** A service whose engine asks `before` about each search in the background. */
async function stageWith(before: () => Promise<void>) {
  const real = createEngine({ threads: 2, kernel: 'auto' });
  const engine = withIndexes(real, (options) => {
    const index = real.createIndex(options);
    return new Proxy(index, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        if (name !== 'beginSearch') return member.bind(target);
        return (asked: NativeSearch): NativeSearchRun => {
          const run = index.beginSearch(asked);
          const next = async (sliceMs: number) => {
            if (asked.background === true) await before();
            return await run.next(sliceMs);
          };
          return { next, close: () => run.close() };
        };
      },
    });
  });
  const measured = { ...settings, recall: measuresAll };
  const stage = await openServiceStage(undefined, measured, { exactTokenVectorsMax: 1, engine });
  const tenant = await stage.newTenant();
  const id = await tenant.createIndex();
  await tenant.upsert(id, texts);
  await expect
    .poll(() => stage.service.statistics().segments.some(({ centroids }) => centroids > 0))
    .toBe(true);
  return { stage, id, ...tenant };
}

it('a measured search that fails is reported, and the search has its answer', async () => {
  const failure = Object.assign(new Error('the disk failed'), { code: 'io' });
  const { stage: opened, id, context, search } = await stageWith(() => Promise.reject(failure));
  await using stage = opened;
  for (let repeat = 1; repeat <= 3; repeat += 1) {
    expect((await search(id, 'w1 w2 w3')).results).toHaveLength(10);
    await expect.poll(() => stage.errors).toHaveLength(repeat);
  }
  expect(stage.errors).toEqual([failure, failure, failure]);
  expect((await stage.service.getIndex(context(), id)).recall).toBeUndefined();
});

it('nothing is measured while searches wait for their turn', async () => {
  const waits = vi.spyOn(FairQueue.prototype, 'hasWaiting', 'get').mockReturnValue(true);
  onTestFinished(() => waits.mockRestore());
  let measured = 0;
  const { stage: opened, id, context, search } = await stageWith(async () => void (measured += 1));
  await using stage = opened;
  for (let repeat = 0; repeat < 3; repeat += 1) await search(id, 'w1 w2 w3');
  expect(measured).toBe(0);
  waits.mockReturnValue(false);
  await search(id, 'w1 w2 w3');
  await expect.poll(async () => (await stage.service.getIndex(context(), id)).recall).toBeDefined();
});
