/**
 * Indexes that nodes share, for commands that read their files: moments of the catalog, and copies of objects. Objects that
 * the catalog does not name are not found, because the store is never listed.
 */
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectories } from '../../process/make-directories.ts';
import type { Config } from '../../app/config.ts';
import type { Unplaced } from '../../catalog/postgres/reads/unplaced.ts';
import type { SegmentFile } from '../../contracts/index-state.ts';
import { cachedFile } from '../../index/cluster/segment-objects.ts';
import type { CachedFile } from '../../index/storage/blob-cache.ts';
import type { ObjectStore } from '../../index/storage/object-store.ts';
import type { Problem } from '../index/findings.ts';
import { isSegment } from '../index/segment-verify.ts';
import type { StoredFile, StoredIndexes, StoredSegment } from '../index/stored-indexes.ts';
import { withCluster, withClusterWork, type ClusterAccess } from './cluster-access.ts';

const purposes = {
  inspecting: {
    failure: 'input_error',
    copy: copyOutline,
    unsearchable: 'not all of it was fetched, so memory and the plan of a search are unknown',
  },
  verifying: { failure: 'verification_failed', copy: copyWhole, unsearchable: undefined },
} as const;
type Purpose = keyof typeof purposes;

/** Copies lie on this machine until they are released, or `work` is over. */
export function withSharedIndexes<T>(
  config: Config,
  purpose: Purpose,
  work: (catalog: ClusterAccess['catalog'], stored: StoredIndexes) => Promise<T>,
): Promise<T> {
  return withCluster(config, (access) =>
    withClusterWork(config, purpose, purposes[purpose].failure, (directory) =>
      work(access.catalog, sharedIndexes(access, directory, purposes[purpose])),
    ),
  );
}

function sharedIndexes(
  { catalog, operator, objects }: ClusterAccess,
  directory: string,
  { copy, unsearchable }: (typeof purposes)[Purpose],
): StoredIndexes {
  const stored = (blob: string, file: SegmentFile): StoredFile => {
    const object = cachedFile(blob, file);
    return {
      ...object,
      async open() {
        const local = path.join(directory, object.name);
        makeDirectories(path.dirname(local));
        await copy(objects, object, local);
        return local;
      },
    };
  };
  return {
    unsearchable,
    async read(indexId) {
      const changes = await catalog.changesSince({ indexId, generation: -1, segmentIds: [] });
      if (changes === undefined || changes === 'reopen') return undefined;
      const { generation, versions } = changes;
      const referenced = new Map<number, number>();
      for (const [row, segmentId] of versions.segmentIds.entries()) {
        const record = versions.records[row] ?? 0;
        referenced.set(segmentId, Math.max(referenced.get(segmentId) ?? 0, record + 1));
      }
      const segments = changes.segments.map(({ id, blob, state, files }): StoredSegment => {
        const own = files.find(({ ending }) => ending === '') ?? { ending: '', bytes: 0, sha256: '' };
        return {
          id,
          indexId,
          blob,
          state,
          recordsReferenced: referenced.get(id) ?? 0,
          own: stored(blob, own),
          derived: files.filter(({ ending }) => ending !== '').map((file) => stored(blob, file)),
        };
      });
      return { generation, versions, segments, others: [] };
    },
    names: (segment) => operator.names(segment),
    documentProblems: async (indexId) => (await operator.unplaced(indexId)).map(unplacedProblem),
    release: ({ indexId }) => rm(path.join(directory, indexId), { recursive: true, force: true }),
  };
}

export function unplacedProblem({ indexId, segmentId, documents }: Unplaced): Problem {
  return {
    index_id: indexId,
    file: '',
    problem: `${documents} documents lie in segment ${segmentId}, which is not there`,
  };
}

function copyWhole(objects: ObjectStore, object: CachedFile, local: string): Promise<void> {
  return objects.getFile(object.key, local, object);
}

/** The header of any file of an index. */
const headerBytes = 64;
const trailerBytes = 64;
/** Offset in the trailer of a segment of the field that says where its directory begins (`native/store/format.h`). */
const directoryField = 16;

/**
 * Copies only the header of an object, and the directory at the end of a segment. The rest of the file is a hole. An
 * inspection reads no more than that.
 */
async function copyOutline(
  objects: ObjectStore,
  { key, name, bytes }: CachedFile,
  local: string,
): Promise<void> {
  const parts: { readonly at: number; readonly part: Buffer }[] = [];
  const read = async (at: number, count: number): Promise<Buffer> => {
    const part = await objects.readPart(key, at, count);
    parts.push({ at, part });
    return part;
  };
  await read(0, Math.min(bytes, headerBytes));
  if (isSegment(name) && bytes >= headerBytes + trailerBytes) {
    const end = bytes - trailerBytes;
    const trailer = await read(end, trailerBytes);
    const at = trailer.length === trailerBytes ? Number(trailer.readBigUInt64LE(directoryField)) : end;
    if (at > headerBytes && at < end) await read(at, end - at);
  }
  const handle = await open(local, 'wx', 0o600);
  try {
    await handle.truncate(bytes);
    for (const { at, part } of parts) await handle.write(part, 0, part.length, at);
  } finally {
    await handle.close();
  }
}
