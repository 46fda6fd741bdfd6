/** Reads an index that nodes share, for commands that inspect its files: one moment of the catalog, and copies of objects. */
import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../../catalog/contract.ts';
import type { ClusterCatalog } from '../../catalog/cluster-contract.ts';
import { ServiceError } from '../../errors.ts';
import type { IndexState, NamedSegment } from '../../contracts/index-state.ts';
import { cachedFile } from '../../index/cluster/segment-objects.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import type { ObjectStore } from '../../index/storage/object-store.ts';

export interface SharedIndex {
  readonly state: IndexState;
  readonly segments: readonly NamedSegment[];
}

/** `undefined` when the index is gone. */
export async function storedIndex(
  catalog: Pick<ClusterCatalog, 'changesSince'>,
  indexId: string,
): Promise<SharedIndex | undefined> {
  const changes = await catalog.changesSince({ indexId, generation: -1, segmentIds: [] });
  if (changes === undefined || changes === 'reopen') return undefined;
  const { generation, segments, versions } = changes;
  const referenced = new Map<number, number>();
  for (const [row, segmentId] of versions.segmentIds.entries()) {
    const record = versions.records[row] ?? 0;
    referenced.set(segmentId, Math.max(referenced.get(segmentId) ?? 0, record + 1));
  }
  return {
    segments,
    state: {
      generation,
      versions,
      segments: segments.map(({ id, blob }) => ({
        id,
        indexId,
        blob,
        state: 'sealed',
        recordsReferenced: referenced.get(id) ?? 0,
      })),
    },
  };
}

type LookedAt = Pick<Catalog, 'loadIndexState' | 'listIndexIds'>;

/** The part of the catalog that these commands read. */
export function lookedAt(catalog: ClusterCatalog): LookedAt {
  return {
    listIndexIds: () => catalog.listIndexIds(),
    async loadIndexState(indexId) {
      const stored = await storedIndex(catalog, indexId);
      if (stored === undefined) throw new ServiceError('not_found', 'the index does not exist');
      return stored.state;
    },
  };
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
export function outlines(
  { catalog, objects }: { readonly catalog: ClusterCatalog; readonly objects: Pick<ObjectStore, 'readPart'> },
  directory: string,
): Pick<BlobStore, 'open' | 'list'> {
  const known = new Map<
    string,
    { readonly key: string; readonly bytes: number; readonly isSegment: boolean }
  >();
  return {
    async list(prefix) {
      const stored = await storedIndex(catalog, prefix.slice(0, prefix.indexOf('/')));
      const listed = (stored?.segments ?? []).flatMap(({ blob, files }) =>
        files.map((file) => ({ ...cachedFile(blob, file), isSegment: file.ending === '' })),
      );
      for (const file of listed) known.set(file.name, file);
      return listed;
    },
    async open(name) {
      const file = known.get(name);
      if (file === undefined) throw new Error(`${name} is not in the catalog`);
      const { key, bytes, isSegment } = file;
      const parts: { readonly at: number; readonly part: Buffer }[] = [];
      const read = async (at: number, count: number): Promise<Buffer> => {
        const part = await objects.readPart(key, at, count);
        parts.push({ at, part });
        return part;
      };
      await read(0, Math.min(bytes, headerBytes));
      if (isSegment && bytes >= headerBytes + trailerBytes) {
        const end = bytes - trailerBytes;
        const trailer = await read(end, trailerBytes);
        const at = trailer.length === trailerBytes ? Number(trailer.readBigUInt64LE(directoryField)) : end;
        if (at > headerBytes && at < end) await read(at, end - at);
      }
      return await writeOutline(path.join(directory, name), bytes, parts);
    },
  };
}

async function writeOutline(
  file: string,
  bytes: number,
  parts: readonly { readonly at: number; readonly part: Buffer }[],
): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await rm(file, { force: true });
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.truncate(bytes);
    for (const { at, part } of parts) await handle.write(part, 0, part.length, at);
  } finally {
    await handle.close();
  }
  return file;
}
