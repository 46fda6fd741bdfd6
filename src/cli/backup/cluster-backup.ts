/**
 * `maxsimd backup` of what several nodes share: the same archive, beside running nodes.
 *
 * One transaction of the catalog is the moment of the backup. Its contents become the catalog of a data directory. Then the
 * objects that it names are fetched, a few ahead, and added. If a merge or a deletion releases an object meanwhile, it stays
 * for MAXSIMD_REPLACED_KEPT_SECONDS. A backup that takes longer may miss an object, and fails.
 */
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { keyPepperFile } from '../../catalog/key-pepper.ts';
import type { SharedSegment } from '../../catalog/postgres/contents.ts';
import { catalogFile } from '../../catalog/sqlite/catalog-files.ts';
import { writeContents } from '../../catalog/sqlite/contents.ts';
import { cachedFile } from '../../index/cluster/segment-objects.ts';
import type { CachedFile } from '../../index/storage/blob-cache.ts';
import { hasCode } from '../../system-errors.ts';
import { withCluster, type ClusterAccess } from '../cluster/cluster-access.ts';
import { unplacedProblem } from '../cluster/shared-indexes.ts';
import { CommandFailure, messageOf } from '../failure.ts';
import type { Problem } from '../index/findings.ts';
import type { ArchiveWriter } from './archive-writer.ts';
import type { BackupOptions, MadeBackup } from './backup.ts';
import { withArchive } from './with-archive.ts';

interface WantedObject extends CachedFile {
  readonly segment: SharedSegment;
}

interface FetchedObject extends WantedObject {
  /** Path of the local copy, or the error of the store. */
  readonly copy: string | Error;
}

/** Objects that are fetched ahead, because each request takes long to begin. */
const fetchedAhead = 8;

export function writeClusterArchive(options: BackupOptions, work: string): Promise<MadeBackup> {
  return withCluster(options.config, async (access) => {
    const { signal } = options;
    const catalog = path.join(work, catalogFile);
    const { segments, unplaced } = await access.operator.contents(async (contents) => {
      await writeContents(catalog, {
        ...contents,
        async *rows(table) {
          for await (const rows of contents.rows(table)) {
            signal.throwIfAborted();
            yield rows;
          }
        },
      });
      return contents;
    });
    const objects = objectsOf(segments);
    const { size } = await stat(catalog);
    const bytesMax = objects.reduce((sum, { bytes }) => sum + bytes, size);
    const keyPepper = options.withKeyPepper ? access.keyPepper : undefined;
    const written = await withArchive({ ...options, work, keyPepper, bytesMax }, async (archive) => {
      await archive.addPath(catalogFile, catalog);
      if (keyPepper !== undefined) await archive.addBytes(keyPepperFile, Buffer.from(keyPepper));
      const lost = unplaced.map(unplacedProblem);
      return [...lost, ...(await addObjects(archive, access, objects, work))];
    });
    return {
      ...written,
      indexes: new Set(segments.map(({ indexId }) => indexId)).size,
      segments: segments.length,
    };
  });
}

/** Segments share codebooks. An archive has each codebook once. */
function objectsOf(segments: readonly SharedSegment[]): readonly WantedObject[] {
  const objects = new Map<string, WantedObject>();
  for (const segment of segments) {
    for (const file of segment.files) {
      const object = cachedFile(segment.blob, file);
      if (!objects.has(object.name)) objects.set(object.name, { ...object, segment });
    }
  }
  return [...objects.values()];
}

async function addObjects(
  archive: ArchiveWriter,
  access: ClusterAccess,
  objects: readonly WantedObject[],
  work: string,
): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for await (const { copy, name, key, segment } of fetchedInOrder(access, objects, work)) {
    if (typeof copy === 'string') {
      await archive.addPath(`segments/${name}`, copy);
      await rm(copy);
      continue;
    }
    if (!(await access.operator.names(segment))) {
      throw new CommandFailure(
        'backup_failed',
        'an object that was replaced after this backup began is gone already: MAXSIMD_REPLACED_KEPT_SECONDS must be ' +
          'longer than a backup takes, on every node',
        { cause: copy },
      );
    }
    const problem = hasCode(copy, 'ENOENT') ? 'is missing' : `is damaged: ${messageOf(copy)}`;
    problems.push({ index_id: segment.indexId, file: key, problem });
  }
  return problems;
}

async function* fetchedInOrder(
  { objects }: Pick<ClusterAccess, 'objects'>,
  wanted: readonly WantedObject[],
  work: string,
): AsyncGenerator<FetchedObject> {
  const fetch = async (object: WantedObject, place: number): Promise<FetchedObject> => {
    const copy = path.join(work, `object-${place}`);
    try {
      await objects.getFile(object.key, copy, object);
      return { ...object, copy };
    } catch (error) {
      return { ...object, copy: error as Error };
    }
  };
  const coming: Promise<FetchedObject>[] = [];
  try {
    for (const [place, object] of wanted.entries()) {
      coming.push(fetch(object, place));
      if (coming.length > fetchedAhead) yield await fetched(coming);
    }
    while (coming.length > 0) yield await fetched(coming);
  } finally {
    // They write into the work directory, which is removed after this.
    await Promise.all(coming);
  }
}

/** Throws unless the store answered. A failed request does not prove that an object is damaged. */
async function fetched(coming: Promise<FetchedObject>[]): Promise<FetchedObject> {
  const object = await coming.shift()!;
  if (typeof object.copy !== 'string' && !hasCode(object.copy, 'ENOENT', 'corrupt')) throw object.copy;
  return object;
}
