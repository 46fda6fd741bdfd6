/**
 * `maxsimd index verify`: checks that the files of a data directory belong together. It reads every page of the catalog,
 * every checksum of every segment, and the usage ledger, and compares the catalog with the segments. It changes nothing, and
 * a server may run beside it. It also checks a directory with which the service would refuse to start.
 */
import path from 'node:path';
import type { IndexRow } from '../../catalog/contract.ts';
import type { IndexState } from '../../contracts/index-state.ts';
import { isDataDirectoryLocked } from '../../catalog/data-directory.ts';
import { catalogFile, inspectCatalogFiles } from '../../catalog/sqlite/catalog-files.ts';
import {
  catalogDamage,
  openCatalogReader,
  type CatalogReader,
} from '../../catalog/sqlite/reads/catalog-reader.ts';
import { usageProblems } from '../../catalog/sqlite/usage/usage-store.ts';
import type { Config } from '../../app/config.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import { readRecall, recallFile } from '../../index/recall/recall-file.ts';
import { codebookPrefix } from '../../index/segments/derived-data.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import { assertCatalog } from '../catalog/catalog-access.ts';
import { chosenIndexes, isEverything, type IndexChoice } from '../catalog/names.ts';
import { CommandFailure, messageOf } from '../failure.ts';
import { isGone, stateOf, withEngine } from './index-access.ts';
import { table, type CommandResult } from '../output.ts';
import { derivedProblem, isSegment, verifySegment, type VerifiedSegment } from './segment-verify.ts';

export interface Problem {
  /** Empty for a file that belongs to no index. */
  readonly index_id: string;
  readonly file: string;
  readonly problem: string;
}

export interface Findings {
  indexes: number;
  segments: number;
  records: number;
  bytes: number;
  readonly problems: Problem[];
  /** Files that the catalog does not name. They are new, or the next start removes them. */
  readonly unreferenced: string[];
}

interface Scope {
  readonly directory: string;
  /** A choice of everything includes files that belong to no index. */
  readonly choice: IndexChoice;
  readonly engine: NativeEngine;
  readonly blobs: BlobStore;
  readonly findings: Findings;
}

/** Versions that are read at once. */
const versionsRead = 1_000;

export async function verifyIndexes(config: Config, choice: IndexChoice): Promise<CommandResult> {
  return verifyResult(await inspectDirectory(config, choice));
}

export function noFindings(): Findings {
  return { indexes: 0, segments: 0, records: 0, bytes: 0, problems: [], unreferenced: [] };
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
    for (const found of files.problems) report(scope, '', found.file, found.problem);
    if (isEverything(choice)) {
      if (files.isReadable) {
        for (const problem of catalogDamage(directory)) report(scope, '', catalogFile, problem);
      }
      for (const { file, problem } of await usageProblems(directory)) report(scope, '', file, problem);
    }
    const catalog = files.isReadable ? openCatalogReader(directory) : undefined;
    try {
      if (catalog === undefined) await verifyUnnamed(scope, await segmentsOf(scope));
      else await verifyNamed(scope, catalog);
    } finally {
      catalog?.close();
    }
    return findings;
  });
}

/** Verifies everything that the catalog names, and lists the other files. */
async function verifyNamed(scope: Scope, catalog: CatalogReader): Promise<void> {
  let rows: readonly IndexRow[];
  try {
    rows = await chosenIndexes(catalog, scope.choice);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    report(scope, '', catalogFile, `its indexes cannot be listed: ${messageOf(error)}`);
    return await verifyUnnamed(scope, await segmentsOf(scope));
  }
  for (const row of rows) await verifyIndex(scope, catalog, row);
  if (!isEverything(scope.choice)) return;
  const files = await scope.blobs.list('');
  let known: ReadonlySet<string>;
  try {
    known = new Set(await catalog.listIndexIds());
  } catch (error) {
    return report(scope, '', catalogFile, `its indexes cannot be listed: ${messageOf(error)}`);
  }
  for (const { name } of files) if (!known.has(indexOf(name))) noteUnreferenced(scope, name);
}

async function verifyIndex(scope: Scope, catalog: CatalogReader, index: IndexRow): Promise<void> {
  const { blobs, engine, findings } = scope;
  const files = await blobs.list(`${index.id}/`);
  let state: IndexState | undefined;
  try {
    state = await stateOf(catalog, index.id);
  } catch (error) {
    report(scope, index.id, catalogFile, `its documents cannot be listed: ${messageOf(error)}`);
    return await verifyUnnamed(scope, files);
  }
  if (state === undefined) return;
  findings.indexes += 1;
  if (index.status === 'error') report(scope, index.id, '', 'the catalog holds the index for damaged');
  await verifyVersions(scope, catalog, index.id, state);
  for (const row of state.segments) {
    const verified = await verifySegment(scope, row, state);
    if (verified.found.length > 0 && (await isGone(catalog, index.id, row.id))) continue;
    count(scope, index.id, row.blob, verified);
  }
  for (const { name } of files) {
    // The codes of a segment name their codebook, which is compared with them.
    if (name.startsWith(codebookPrefix(index.id)) && !name.endsWith('.tmp')) continue;
    if (name === recallFile(index.id)) {
      await readRecall(blobs, index.id).catch((error: unknown) =>
        report(scope, index.id, name, messageOf(error)),
      );
      continue;
    }
    const segment = state.segments.find(({ blob }) => name.startsWith(blob));
    if (segment === undefined || name.endsWith('.tmp')) {
      noteUnreferenced(scope, name);
      continue;
    }
    const problem = await derivedProblem({ engine, blobs }, name);
    if (problem === '' || (await isGone(catalog, index.id, segment.id))) continue;
    report(scope, index.id, name, problem);
  }
}

/** Reads the documents of an index, and so the pages that they lie on. */
async function verifyVersions(
  scope: Scope,
  catalog: CatalogReader,
  indexId: string,
  { versions: { versionIds } }: IndexState,
): Promise<void> {
  try {
    for (let first = 0; first < versionIds.length; first += versionsRead) {
      await catalog.resolveVersions(indexId, [...versionIds.subarray(first, first + versionsRead)]);
    }
  } catch (error) {
    report(scope, indexId, catalogFile, `its documents cannot be read: ${messageOf(error)}`);
  }
}

/** Verifies segments alone, without a catalog to compare them with. */
async function verifyUnnamed(scope: Scope, files: readonly { readonly name: string }[]): Promise<void> {
  for (const { name } of files) {
    if (isSegment(name)) count(scope, indexOf(name), name, await verifySegment(scope, { blob: name }));
  }
}

function count(scope: Scope, indexId: string, file: string, verified: VerifiedSegment): void {
  const { findings } = scope;
  findings.segments += 1;
  findings.records += verified.records;
  findings.bytes += verified.bytes;
  for (const problem of verified.found) report(scope, indexId, file, problem);
}

/** A running server may just have made the file, or be about to remove it. Otherwise a crash or a loss left it. */
function noteUnreferenced(scope: Scope, file: string): void {
  scope.findings.unreferenced.push(file);
  if (!isSegment(file) || isDataDirectoryLocked(scope.directory)) return;
  report(scope, indexOf(file), file, 'is a segment that the catalog does not name');
}

function segmentsOf({ blobs, choice }: Scope): Promise<readonly { readonly name: string }[]> {
  return blobs.list(choice.index === undefined ? '' : `${choice.index}/`);
}

function indexOf(blob: string): string {
  return blob.slice(0, blob.indexOf('/'));
}

function report({ findings }: Scope, indexId: string, file: string, problem: string): void {
  findings.problems.push({ index_id: indexId, file, problem });
}

export function verifyResult({ problems, unreferenced, ...counts }: Findings): CommandResult {
  const { records, segments, indexes } = counts;
  return {
    document: { ...counts, problems, unreferenced_files: unreferenced },
    text: [
      `${records} records of ${segments} segments of ${indexes} indexes verified, ${problems.length} problems`,
      ...(problems.length === 0 ? [] : [problemsTable(problems)]),
      ...(unreferenced.length === 0 ? [] : [`not in the catalog: ${unreferenced.join(', ')}`]),
    ].join('\n'),
    failed: problems.length > 0,
  };
}

export function problemsTable(problems: readonly Problem[]): string {
  return table(
    ['index', 'file', 'problem'],
    problems.map(({ index_id: id, file, problem }) => [id, file, problem]),
  );
}
