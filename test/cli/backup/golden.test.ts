/**
 * Archives of every format that was ever written (`test/fixtures/backup`) are restored and answer as they did. With these the
 * formats of archive, catalog, ledger, segments and what is derived from them are frozen: who changes one reads the others. The
 * last archive holds rows that the default model pooled, with refined codes.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { archiveVersion } from '../../../src/cli/backup/archive-format.ts';
import {
  answersOf,
  contextOf,
  goldenSettings,
  kept,
  plainUsage,
  pooledAnswers,
  pooledSettings,
  type Golden,
  type PooledAnswer,
  type PooledGolden,
} from '../../fixtures/backup/golden.ts';
import { parseRecording, RecordedEncoder } from '../../support/encoder/recorded-encoder.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { runJson } from '../../support/commands/command-process.ts';
import { openServiceStage } from '../../support/stages/service-stage.ts';

const folder = path.resolve(import.meta.dirname, '../../fixtures/backup');
const pooledArchive = 'format-2-pooled.tar';
/** Its codebooks have a format that is read as it is. Those of the other archives are made again. */
const codebookArchive = 'format-2-segment-4-codebook-3.tar';
const archives = readdirSync(folder).filter((name) => name.endsWith('.tar') && name !== pooledArchive);

it('there is an archive of each format', () => {
  const formats = Array.from({ length: archiveVersion }, (_format, place) => `format-${place + 1}.tar`);
  // Segments got a format of their own later, and codebooks.
  expect(archives.toSorted()).toEqual([...formats, 'format-2-segment-4.tar', codebookArchive].toSorted());
});

/** The data directory that an archive was restored into. */
async function restored(archive: string, indexes: number): Promise<string> {
  const directory = path.join(await newDirectory(), 'data');
  const environment = { MAXSIMD_DATA_DIR: directory };
  const { document } = await runJson(['restore', path.join(folder, archive)], { environment });
  expect(document).toMatchObject({ indexes, problems: [] });
  expect((await runJson(['index', 'verify'], { environment })).document).toMatchObject({ problems: [] });
  return directory;
}

/** The inodes of codebooks of format 3, by name. A codebook that is made again has another one. */
function codebooksOf(directory: string, indexId: string): ReadonlyMap<string, number> {
  const files = path.join(directory, 'segments', indexId);
  const isOne = (name: string): boolean =>
    name.startsWith('codebook-') && readFileSync(path.join(files, name)).readUInt32LE(8) === 3;
  const found = readdirSync(files).filter(isOne);
  return new Map(found.map((name) => [name, statSync(path.join(files, name)).ino]));
}

function answersBeside(archive: string): string {
  return readFileSync(path.join(folder, archive.replace(/tar$/, 'json')), 'utf8');
}

describe.each(archives)('%s', (archive) => {
  const golden = JSON.parse(answersBeside(archive)) as Golden;

  it('is restored whole and answers as before', async () => {
    const directory = await restored(archive, golden.tenants.length);
    await using stage = await openServiceStage(directory, goldenSettings);
    for (const one of golden.tenants) {
      const { id, apiKey, revokedKey, readingKey, index, answers, usage, days, acts } = one;
      expect(plainUsage(await stage.catalog.usageTotals(id, golden.month))).toEqual(usage);
      expect(await kept(stage.catalog, id)).toMatchObject({ ...(days && { days }), ...(acts && { acts }) });
      const { tenant, permit } = await stage.service.admit(`Bearer ${apiKey}`);
      permit.release();
      expect(tenant.id).toBe(id);
      await expect(stage.service.admit(`Bearer ${revokedKey}`)).rejects.toMatchObject({
        code: 'authentication_failed',
      });
      expect(await answersOf(stage, tenant, index)).toEqual(answers);
      const row = await stage.service.getIndex(contextOf(tenant, stage.clock.ms), index.id);
      expect(row.matchFields).toEqual([]);
      if (readingKey !== undefined) {
        const reading = await stage.service.admit(`Bearer ${readingKey}`);
        reading.permit.release();
        expect(reading.access).toBe('read');
      }
      // It goes on where it was.
      const document = { docId: 'd1', text: 'new words', metadata: '{"version":"new"}' };
      await stage.service.upsertDocuments(contextOf(tenant, stage.clock.ms), index.id, [document]);
      const request = { query: 'new', topK: 1, returnComponents: false };
      const { results } = await stage.service.search(contextOf(tenant, stage.clock.ms), index.id, request);
      expect(results).toMatchObject([{ docId: 'd1', textRange: { start: 0, end: 9 } }]);
      expect(await stage.service.deleteDocument(contextOf(tenant, stage.clock.ms), index.id, 'd1')).toBe(
        true,
      );
    }
    await stage.service.maintain();
    expect(stage.errors).toEqual([]);
  });
});

it('codebooks of the archive are read, not made again', async () => {
  const { tenants } = JSON.parse(answersBeside(codebookArchive)) as Golden;
  const directory = await restored(codebookArchive, tenants.length);
  const codebooks = () => tenants.map(({ index }) => codebooksOf(directory, index.id));
  const archived = codebooks();
  expect(archived.map(({ size }) => size)).toEqual(tenants.map(() => 1));
  await using stage = await openServiceStage(directory, goldenSettings);
  for (const { apiKey, index, answers } of tenants) {
    const { tenant, permit } = await stage.service.admit(`Bearer ${apiKey}`);
    permit.release();
    expect(await answersOf(stage, tenant, index)).toEqual(answers);
  }
  // Merges make codes anew, with the codebook that is there if it was read.
  await stage.service.maintain();
  expect(codebooks()).toEqual(archived);
  expect(stage.errors).toEqual([]);
});

describe('the archive of pooled rows', () => {
  const { apiKey, indexId, recording, laterText, answers } = parseRecording(
    answersBeside(pooledArchive),
  ) as PooledGolden;

  it('is restored whole, and answers as before with all tokens of each row, also when it was merged', async () => {
    const directory = await restored(pooledArchive, 1);
    const encoder = new RecordedEncoder(recording);
    await using stage = await openServiceStage(directory, pooledSettings, { encoder });
    const { tenant, permit } = await stage.service.admit(`Bearer ${apiKey}`);
    permit.release();
    const answered = async (except?: string) => {
      const all: Record<string, readonly PooledAnswer[]> = {};
      for (const query of Object.keys(answers)) {
        const found = await pooledAnswers(stage, tenant, { indexId, query });
        all[query] = found.filter(({ docId }) => docId !== except);
      }
      return all;
    };
    expect(await answered()).toEqual(answers);
    const filesOf = () => readdirSync(path.join(directory, 'segments', indexId));
    const archived = filesOf().filter((name) => name.endsWith('.seg'));
    const later = { docId: 'later', text: laterText, metadata: '{}' };
    const put = () => stage.service.upsertDocuments(contextOf(tenant, stage.clock.ms), indexId, [later]);
    // So many versions that segments are sealed, and those of the archive merged.
    for (let version = 0; version < 30; version++) await put();
    await stage.service.maintain();
    expect(filesOf()).not.toEqual(expect.arrayContaining(archived));
    expect(await answered('later')).toEqual(answers);
    const [query] = Object.keys(answers);
    const found = await pooledAnswers(stage, tenant, { indexId, query: query! });
    expect(found.filter(({ docId }) => docId === 'later')).toHaveLength(1);
    expect(stage.errors).toEqual([]);
  });
});
