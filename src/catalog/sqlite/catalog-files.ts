/**
 * Checks whether the files of a data directory belong together: `catalog.db`, the pepper of its keys, and the mark that its
 * commits leave with the segments. Changes nothing. A directory with a problem is not opened, because a server deletes
 * segments that its catalog does not name, and takes a directory without a catalog for a new one.
 *
 * A new directory gets its pepper first, then its catalog in one transaction, then everything else. So an interrupted start
 * leaves a directory that still counts as new, or a complete one.
 */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { ServiceError } from '../../errors.ts';
import { hasCode } from '../../system-errors.ts';
import { commitMarkFile, readCommitMark, type CommitMark } from '../commit-mark.ts';
import { fingerprintOf, keyPepperFile, readKeyPepper } from '../key-pepper.ts';
import { damage, isDamage, needsRollback, openReader, toOperatingError } from './connection.ts';

export interface FileProblem {
  /** Relative to the data directory. */
  readonly file: string;
  readonly problem: string;
  /** Advice for the operator. */
  readonly remedy: string;
}

export interface CatalogFiles {
  /** Nothing was ever stored here. */
  readonly isNew: boolean;
  /** There is a catalog and it can be read, even if it does not belong to the other files. */
  readonly isReadable: boolean;
  /** Absent when there is none that can be used. */
  readonly keyPepper?: Uint8Array;
  readonly problems: readonly FileProblem[];
}

/** The columns of the one row of `catalog` that other files are compared with. */
interface Identity extends CommitMark {
  readonly pepperFingerprint: Buffer;
}

type FoundCatalog =
  | { readonly isNew: boolean; readonly identity?: Identity; readonly problem?: undefined }
  | { readonly isNew: false; readonly identity?: undefined; readonly problem: FileProblem };

export const catalogFile = 'catalog.db';
const segmentsDirectory = path.dirname(commitMarkFile);

export async function inspectCatalogFiles(directory: string): Promise<CatalogFiles> {
  // Other processes may write meanwhile, so the order matters. The mark is never ahead of a catalog that is read after it. A
  // process that creates the directory makes the pepper before the catalog, and everything else after it.
  const mark = readCommitMark(directory);
  const traces = await tracesIn(directory);
  const catalog = await findCatalog(directory, traces);
  const pepper = await findPepper(directory, catalog);
  const problems = [catalog.problem, pepper.problem, markProblem(mark, catalog.identity)];
  return {
    isNew: catalog.isNew,
    isReadable: catalog.identity !== undefined,
    ...(pepper.found !== undefined && { keyPepper: pepper.found }),
    problems: problems.filter((problem) => problem !== undefined),
  };
}

/** Throws the first problem, as a start that is refused. */
export function assertNoProblem({ problems: [first] }: CatalogFiles, directory: string): void {
  if (first === undefined) return;
  const { file, problem, remedy } = first;
  throw new ServiceError(
    'service_unavailable',
    `${path.join(directory, file)} ${problem}. Nothing was changed. ${remedy}`,
  );
}

/** Files that show that the directory has, or had, a catalog. */
async function tracesIn(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch(ifMissing<string[]>([]));
  const segments = await readdir(path.join(directory, segmentsDirectory)).catch(ifMissing<string[]>([]));
  return [
    ...names.filter((name) => name === 'usage.db'),
    // A new file system that is mounted there holds `lost+found`.
    ...(segments.every((name) => name === 'lost+found') ? [] : [segmentsDirectory]),
  ];
}

async function findCatalog(directory: string, traces: readonly string[]): Promise<FoundCatalog> {
  const file = path.join(directory, catalogFile);
  const found = await stat(file).catch(ifMissing(undefined));
  const missing = {
    file: catalogFile,
    problem: `${found === undefined ? 'is missing' : 'is empty'}, and ${traces.join(', ')} cannot be used without it`,
    remedy: 'Put it back from a backup, or use another directory to start anew.',
  };
  try {
    const identity = found === undefined || found.size === 0 ? undefined : readIdentity(file);
    if (identity !== undefined) return { isNew: false, identity };
    return traces.length === 0 ? { isNew: true } : { isNew: false, problem: missing };
  } catch (error) {
    if (!isDamage(error)) throw toOperatingError(error);
    return {
      isNew: false,
      problem: {
        file: catalogFile,
        problem: `is damaged (${(error as Error).message})`,
        remedy: 'Put it back from a backup.',
      },
    };
  }
}

/** `undefined` when the transaction that creates the catalog was never committed. */
function readIdentity(file: string): Identity | undefined {
  const connection = openReader(file);
  try {
    if (connection.pragma('user_version', { simple: true }) === 0) return undefined;
    const identity = connection
      .prepare<[], Identity>('SELECT id AS catalogId, commits, key_pepper AS pepperFingerprint FROM catalog')
      .get();
    if (identity === undefined) throw damage('it does not say which catalog it is');
    return identity;
  } catch (error) {
    if (needsRollback(error)) return undefined;
    throw error;
  } finally {
    connection.close();
  }
}

async function findPepper(
  directory: string,
  { isNew, identity }: FoundCatalog,
): Promise<{ readonly found?: Uint8Array; readonly problem?: FileProblem }> {
  const found = await readKeyPepper(directory);
  const amiss = (problem: string): { readonly problem: FileProblem } => ({
    problem: {
      file: keyPepperFile,
      problem,
      remedy: 'Put it back from a backup, or make every API key void with "maxsimd key reset".',
    },
  });
  if (found === undefined) {
    return isNew ? {} : amiss('is missing, and no API key can be checked without it');
  }
  if (typeof found === 'string') return amiss(found);
  const isForeign = identity !== undefined && !identity.pepperFingerprint.equals(fingerprintOf(found));
  return isForeign ? amiss('is not the one that the API keys of this catalog were made with') : { found };
}

function markProblem(mark: CommitMark | undefined, identity: Identity | undefined): FileProblem | undefined {
  if (mark === undefined || identity === undefined) return undefined;
  const isForeign = mark.catalogId !== identity.catalogId;
  if (!isForeign && mark.commits <= identity.commits) return undefined;
  return {
    file: catalogFile,
    problem: isForeign
      ? 'is not the catalog that the segments belong to'
      : `is older than the segments: it lacks the last ${mark.commits - identity.commits} commits`,
    remedy:
      `Put the right one back. To go on with this one and to lose what it does not know, remove ${commitMarkFile}: ` +
      'the segments that it does not name are then deleted.',
  };
}

function ifMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (hasCode(error, 'ENOENT')) return value;
    throw error;
  };
}
