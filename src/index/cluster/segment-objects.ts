/**
 * The objects of a segment: the segment itself and its derived data, each under the segment's blob and an ending. A blob has
 * a random name, not the number of the segment, because a catalog that was restored to an earlier moment gives numbers
 * again.
 */
import { randomUUID } from 'node:crypto';
import type { NamedSegment, SegmentFile } from '../../contracts/index-state.ts';
import type { SegmentInfo } from '../engine/native.ts';
import { columnsPrefix, derivedEndings } from '../segments/derived-data.ts';
import type { BlobCache, CachedFile, OpenCopy } from '../storage/blob-cache.ts';
import { removeBlobs, type Removable } from '../storage/blob-store.ts';
import type { ObjectStore } from '../storage/object-store.ts';

const codebookEnding = '.codebook';
/** The directory of most segments lies in this many parts at the end of the file. */
const directoryParts = 4;

export function newBlob(indexId: string): string {
  return `${indexId}/${randomUUID()}.seg`;
}

/** Every ending that an object of a segment may have. Columns are files of one node, and no objects. */
export const objectEndings: readonly string[] = ['', ...Object.values(derivedEndings), codebookEnding];

/** Resolves to the local path of the segment. Its derived data lies beside it. */
export async function fetchSegment(
  cache: Pick<BlobCache, 'fetch'>,
  { blob, files }: NamedSegment,
): Promise<string> {
  const [path = ''] = await Promise.all(
    files
      .toSorted((a, b) => a.ending.length - b.ending.length)
      .map((file) => cache.fetch(cachedFile(blob, file))),
  );
  return path;
}

/**
 * Resolves when the engine can open the segment. Files that searches read completely are fetched whole: the derived data, or the
 * segment itself if it has none. Of a segment with derived data only the first and last parts are fetched.
 */
export async function openSegmentCopy(
  cache: Pick<BlobCache, 'fetch' | 'open'>,
  segment: NamedSegment,
): Promise<OpenCopy> {
  const { blob, files } = segment;
  const own = files.find(({ ending }) => ending === '');
  if (own === undefined || files.length === 1) return { path: await fetchSegment(cache, segment) };
  const derived = { ...segment, files: files.filter((file) => file !== own) };
  const opening = cache.open(cachedFile(blob, own)).then(async (copy) => {
    await copy.partial?.needEnds(directoryParts);
    return copy;
  });
  const [copy] = await Promise.all([opening, fetchSegment(cache, derived)]);
  return copy;
}

/** Removes the local copies of a segment, and its columns. A codebook stays, because segments share it. */
export async function uncacheSegment(cache: Removable, blob: string): Promise<void> {
  for (const ending of ['', ...Object.values(derivedEndings)]) await cache.remove(blob + ending);
  await removeBlobs(cache, blob + columnsPrefix);
}

/** The local copies of a segment's derived data. */
export function derivedCopies({ blob, files }: Pick<NamedSegment, 'blob' | 'files'>): readonly CachedFile[] {
  return files.filter(({ ending }) => ending !== '').map((file) => cachedFile(blob, file));
}

/** Puts a sealed segment of the cache into the object store, with its derived data if it has some. */
export async function putSegment(
  {
    objects,
    cache,
  }: {
    readonly objects: Pick<ObjectStore, 'putFile'>;
    readonly cache: Pick<BlobCache, 'create' | 'adopt'>;
  },
  { id, blob }: { readonly id: number; readonly blob: string },
  info: SegmentInfo,
): Promise<NamedSegment> {
  const sources: readonly Pick<SegmentFile, 'ending' | 'name'>[] = [
    { ending: '' },
    ...(info.centroids > 0
      ? [
          { ending: derivedEndings.codes },
          { ending: derivedEndings.postings },
          { ending: codebookEnding, name: info.codebook },
        ]
      : []),
  ];
  const files = await Promise.all(
    sources.map(async (source): Promise<SegmentFile> => ({
      ...source,
      ...(await objects.putFile(blob + source.ending, await cache.create(copyName(blob, source)))),
    })),
  );
  for (const source of sources) await cache.adopt(copyName(blob, source));
  return { id, blob, records: info.records, files };
}

export function cachedFile(blob: string, { bytes, sha256, ...file }: SegmentFile): CachedFile {
  return { name: copyName(blob, file), key: blob + file.ending, bytes, sha256 };
}

/** The name of the local copy. A codebook has the name that codes call it by, in the folder of the segment. */
function copyName(blob: string, { ending, name }: Pick<SegmentFile, 'ending' | 'name'>): string {
  return name === undefined ? blob + ending : `${blob.slice(0, blob.lastIndexOf('/'))}/${name}`;
}
