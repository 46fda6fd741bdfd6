/**
 * A segment as objects: itself and what is derived from it, each under the segment's blob and an ending. A blob is named
 * by a random number, not by the segment's: a catalog that was restored to an earlier moment gives numbers again.
 */
import { randomUUID } from 'node:crypto';
import type { NamedSegment, SegmentFile } from '../../index-state.ts';
import type { SegmentInfo } from '../engine/native.ts';
import { derivedEndings } from '../segments/derived-data.ts';
import type { BlobCache, CachedFile, OpenCopy } from '../storage/blob-cache.ts';
import type { ObjectStore } from '../storage/object-store.ts';

const codebookEnding = '.codebook';
/** The directory of most segments is in so many parts at their end. */
const directoryParts = 4;

export function newBlob(indexId: string): string {
  return `${indexId}/${randomUUID()}.seg`;
}

/** Every ending that an object of a segment may have. */
export const objectEndings: readonly string[] = ['', ...Object.values(derivedEndings), codebookEnding];

/** Resolves to the local path of the segment, with what is derived from it beside it. */
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
 * Resolves when it can be opened. What searches read all of is fetched whole: what is derived from it, or the segment
 * itself where there is nothing of that kind. Otherwise there is no more of the segment than its ends.
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

/** Local copies go; a codebook, which segments share, stays. */
export async function uncacheSegment(cache: Pick<BlobCache, 'remove'>, blob: string): Promise<void> {
  for (const ending of ['', ...Object.values(derivedEndings)]) await cache.remove(blob + ending);
}

/** Puts a sealed segment that lies in the cache; with what is derived from it, when there is some. */
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
  const folder = blob.slice(0, blob.lastIndexOf('/'));
  const hasCodes = info.centroids > 0;
  const sources = [
    { ending: '', name: blob },
    ...(hasCodes
      ? [
          { ending: derivedEndings.codes, name: blob + derivedEndings.codes },
          { ending: derivedEndings.postings, name: blob + derivedEndings.postings },
          { ending: codebookEnding, name: `${folder}/${info.codebook}`, codebook: info.codebook },
        ]
      : []),
  ];
  const files = await Promise.all(
    sources.map(async ({ ending, name, codebook }): Promise<SegmentFile> => {
      const put = await objects.putFile(blob + ending, await cache.create(name));
      return { ending, ...put, ...(codebook === undefined ? {} : { name: codebook }) };
    }),
  );
  for (const { name } of sources) await cache.adopt(name);
  return { id, blob, records: info.records, files };
}

/** Where a copy of the object lies: its codes find their codebook there. */
export function cachedFile(blob: string, { ending, bytes, sha256, name }: SegmentFile): CachedFile {
  const folder = blob.slice(0, blob.lastIndexOf('/'));
  return {
    name: name === undefined ? blob + ending : `${folder}/${name}`,
    key: blob + ending,
    bytes,
    sha256,
  };
}
