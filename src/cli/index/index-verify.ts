/**
 * `maxsimd index verify`: checks that stored files belong together. It changes nothing, and servers may run beside it. A data
 * directory is checked to every page of the catalog, every checksum of every segment, and the usage ledger, also if the
 * service would refuse to start with it. For a cluster, every object that the catalog names is fetched and compared with its
 * size and SHA-256.
 */
import path from 'node:path';
import type { IndexRow } from '../../catalog/contract.ts';
import { isDataDirectoryLocked } from '../../catalog/data-directory.ts';
import { catalogFile, inspectCatalogFiles } from '../../catalog/sqlite/catalog-files.ts';
import {
  catalogDamage,
  openCatalogReader,
  type CatalogReader,
} from '../../catalog/sqlite/reads/catalog-reader.ts';
import { usageProblems } from '../../catalog/sqlite/usage/usage-store.ts';
import { isClustered, type Config } from '../../app/config.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import { readRecall, recallFile } from '../../index/recall/recall-file.ts';
import { codebookPrefix } from '../../index/segments/derived-data.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import { assertCatalog } from '../catalog/catalog-access.ts';
import { chosenIndexes, isEverything, type IndexChoice } from '../catalog/names.ts';
import { CommandFailure, messageOf } from '../failure.ts';
import type { CommandResult } from '../output.ts';
import { directoryIndexes } from './directory-indexes.ts';
import { noFindings, report, verifyResult, type Findings } from './findings.ts';
import { withEngine, withIndexes } from './index-access.ts';
import { isSegment, verifyIndex, verifySegment, type Verifying } from './segment-verify.ts';
import type { StoredFile } from './stored-indexes.ts';

interface Scope extends Verifying {
  readonly directory: string;
  /** A choice of everything includes files that belong to no index. */
  readonly choice: IndexChoice;
  readonly blobs: BlobStore;
}

export async function verifyIndexes(config: Config, choice: IndexChoice): Promise<CommandResult> {
  const inspect = isClustered(config) ? inspectCluster : inspectDirectory;
  return verifyResult(await inspect(config, choice));
}

async function inspectCluster(config: Config, choice: IndexChoice): Promise<Findings> {
  const findings = noFindings();
  await withIndexes(config, { ...choice, purpose: 'verifying' }, async ({ engine, rows, stored }) => {
    for (const row of rows) {
      const index = await stored.read(row.id);
      if (index !== undefined) await verifyIndex({ engine, findings, stored }, row, index);
    }
  });
  return findings;
}

/** Counts what the directory stores, and finds its problems. */
export async function inspectDirectory(config: Config, choice: IndexChoice): Promise<Findings> {
  const directory = config.MAXSIMD_DATA_DIR;
  await assertCatalog(directory);
  const files = await inspectCatalogFiles(directory);
  const blobs = await openLocalBlobStore(path.join(directory, 'segments'));
  return withEngine(config, async (engine) => {
    const findings = noFindings();
    const scope: Scope = { directory, choice, engine, blobs, findings };
    for (const found of files.problems) report(findings, '', found.file, found.problem);
    if (isEverything(choice)) {
      if (files.isReadable) {
        for (const problem of catalogDamage(directory)) report(findings, '', catalogFile, problem);
      }
      for (const { file, problem } of await usageProblems(directory)) report(findings, '', file, problem);
    }
    const catalog = files.isReadable ? openCatalogReader(directory) : undefined;
    try {
      if (catalog === undefined) await verifyUnnamed(scope, choice.index);
      else await verifyNamed(scope, catalog);
    } finally {
      catalog?.close();
    }
    return findings;
  });
}

/** Verifies everything that the catalog names, and lists the other files. */
async function verifyNamed(scope: Scope, catalog: CatalogReader): Promise<void> {
  const { blobs, choice, findings } = scope;
  let rows: readonly IndexRow[];
  try {
    rows = await chosenIndexes(catalog, choice);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    report(findings, '', catalogFile, `its indexes cannot be listed: ${messageOf(error)}`);
    return await verifyUnnamed(scope, choice.index);
  }
  const stored = directoryIndexes(catalog, blobs);
  for (const row of rows) {
    const index = await stored.read(row.id).catch((error: unknown) => error as Error);
    if (index instanceof Error) {
      report(findings, row.id, catalogFile, `its documents cannot be listed: ${messageOf(index)}`);
      await verifyUnnamed(scope, row.id);
    } else if (index !== undefined) {
      await verifyIndex({ ...scope, stored }, row, index);
      await verifyOthers(scope, row.id, index.others);
    }
  }
  if (!isEverything(choice)) return;
  const files = await blobs.list('');
  let known: ReadonlySet<string>;
  try {
    known = new Set(await catalog.listIndexIds());
  } catch (error) {
    return report(findings, '', catalogFile, `its indexes cannot be listed: ${messageOf(error)}`);
  }
  for (const { name } of files) if (!known.has(indexOf(name))) noteUnreferenced(scope, name);
}

/** Files of an index that belong to none of its segments. */
async function verifyOthers(scope: Scope, indexId: string, files: readonly StoredFile[]): Promise<void> {
  for (const file of files) {
    const { name } = file;
    // The codes of a segment name their codebook, which is compared with them.
    if (name.startsWith(codebookPrefix(indexId)) && !name.endsWith('.tmp')) continue;
    if (name !== recallFile(indexId)) noteUnreferenced(scope, name);
    else
      await readRecall(file, indexId).catch((error: unknown) =>
        report(scope.findings, indexId, name, messageOf(error)),
      );
  }
}

/** Verifies segments alone, without a catalog to compare them with. */
async function verifyUnnamed(scope: Scope, indexId: string | undefined): Promise<void> {
  for (const { name } of await scope.blobs.list(indexId === undefined ? '' : `${indexId}/`)) {
    const local = path.join(scope.directory, 'segments', name);
    if (!isSegment(name)) continue;
    scope.findings.segments += 1;
    await verifySegment(scope, { indexId: indexOf(name), blob: name, local });
  }
}

/** A running server may just have made the file, or be about to remove it. Otherwise a crash or a loss left it. */
function noteUnreferenced({ directory, findings }: Scope, file: string): void {
  findings.unreferenced.push(file);
  if (!isSegment(file) || isDataDirectoryLocked(directory)) return;
  report(findings, indexOf(file), file, 'is a segment that the catalog does not name');
}

function indexOf(blob: string): string {
  return blob.slice(0, blob.indexOf('/'));
}
