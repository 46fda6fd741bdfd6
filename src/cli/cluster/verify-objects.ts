/**
 * `maxsimd index verify` for a cluster. It fetches every object that the catalog names and compares its size and SHA-256. It
 * checks every record of every segment with its checksum, and compares the catalog with the segments. It changes nothing,
 * and nodes may run beside it. One segment at a time lies on this machine.
 *
 * Objects that the catalog does not name are not found, because the store is never listed.
 */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../app/config.ts';
import type { IndexRow } from '../../catalog/contract.ts';
import type { NamedSegment } from '../../contracts/index-state.ts';
import { cachedFile } from '../../index/cluster/segment-objects.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import { hasCode } from '../../system-errors.ts';
import { chosenIndexes, type IndexChoice } from '../catalog/names.ts';
import { messageOf } from '../failure.ts';
import { withEngine } from '../index/index-access.ts';
import { noFindings, verifyResult, type Findings, type Problem } from '../index/index-verify.ts';
import { derivedProblem, verifySegment } from '../index/segment-verify.ts';
import type { CommandResult } from '../output.ts';
import { withCluster, withClusterWork, type ClusterAccess } from './cluster-access.ts';
import type { Unplaced } from '../../catalog/postgres/reads/unplaced.ts';
import { storedIndex, type SharedIndex } from './shared-index.ts';

interface Scope extends ClusterAccess {
  readonly directory: string;
  readonly engine: NativeEngine;
  readonly findings: Findings;
}

export async function verifyObjects(config: Config, choice: IndexChoice): Promise<CommandResult> {
  const findings = noFindings();
  await withCluster(config, (access) =>
    withClusterWork(config, 'verifying', 'verification_failed', (directory) =>
      withEngine(config, async (engine) => {
        const scope: Scope = { ...access, directory, engine, findings };
        for (const row of await chosenIndexes(access.catalog, choice)) await verifyIndex(scope, row);
      }),
    ),
  );
  return verifyResult(findings);
}

async function verifyIndex(scope: Scope, index: IndexRow): Promise<void> {
  const stored = await storedIndex(scope.catalog, index.id);
  if (stored === undefined) return;
  const { findings } = scope;
  findings.indexes += 1;
  if (index.status === 'error') report(scope, index.id, '', 'the catalog holds the index for damaged');
  findings.problems.push(...(await scope.operator.unplaced(index.id)).map(unplacedProblem));
  for (const segment of stored.segments) {
    await verifyOne(scope, index.id, stored, segment);
    await rm(path.join(scope.directory, index.id), { recursive: true, force: true });
  }
}

export function unplacedProblem({ indexId, segmentId, documents }: Unplaced): Problem {
  return {
    index_id: indexId,
    file: '',
    problem: `${documents} documents lie in segment ${segmentId}, which is not there`,
  };
}

async function verifyOne(
  scope: Scope,
  indexId: string,
  { state }: SharedIndex,
  segment: NamedSegment,
): Promise<void> {
  const { engine, directory, findings } = scope;
  const problems = await fetchAll(scope, segment);
  const blobs = { open: (name: string) => Promise.resolve(path.join(directory, name)) };
  const row = state.segments.find(({ id }) => id === segment.id);
  let verified = { records: 0, bytes: 0 };
  if (row !== undefined && !problems.has(segment.blob)) {
    const { found, ...counts } = await verifySegment({ engine, blobs }, row, state);
    verified = counts;
    if (found.length > 0) problems.set(segment.blob, found);
  }
  for (const { ending } of segment.files.filter((file) => file.ending !== '')) {
    const name = segment.blob + ending;
    // If the codebook is missing, its codes cannot be checked.
    if (problems.size > 0) continue;
    const problem = await derivedProblem({ engine, blobs }, name);
    if (problem !== '') problems.set(name, [problem]);
  }
  // The segment was merged away meanwhile, and its objects were collected.
  if (problems.size > 0 && !(await scope.operator.names(segment))) return;
  findings.segments += 1;
  findings.records += verified.records;
  findings.bytes += verified.bytes;
  for (const [file, found] of problems) for (const problem of found) report(scope, indexId, file, problem);
}

/** Returns the problems of objects, by key. */
async function fetchAll(
  { objects, directory }: Scope,
  { blob, files }: NamedSegment,
): Promise<Map<string, readonly string[]>> {
  const problems = new Map<string, readonly string[]>();
  await Promise.all(
    files.map(async (file) => {
      const { key, name, ...expected } = cachedFile(blob, file);
      const copy = path.join(directory, name);
      await mkdir(path.dirname(copy), { recursive: true });
      try {
        await objects.getFile(key, copy, expected);
      } catch (error) {
        if (!hasCode(error, 'ENOENT', 'corrupt')) throw error;
        problems.set(key, [hasCode(error, 'ENOENT') ? 'is missing' : `is damaged: ${messageOf(error)}`]);
      }
    }),
  );
  return problems;
}

function report({ findings }: Scope, indexId: string, file: string, problem: string): void {
  findings.problems.push({ index_id: indexId, file, problem });
}
