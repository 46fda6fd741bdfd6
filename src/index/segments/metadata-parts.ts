/** Reads the metadata of many versions in parts of about a megabyte: some milliseconds of a disk, and one of the event loop. */
import { unavailable } from '../../errors.ts';

/** The characters of a part, and about its bytes. */
export const partCharactersMax = 1 << 20;
/** The first read, when the size of the metadata is unknown. One document has at most 16 KiB. */
const firstVersions = 64;
const versionsMax = 1024;

export interface MetadataPart<Version> {
  /** The place of its first version. */
  readonly first: number;
  readonly versions: readonly Version[];
}

/** @throws {ServiceError} `service_unavailable` when a version is gone: without it a wrong answer would follow. An index that is being erased has none, and whoever uses it finds that out. */
export async function* metadataInParts<Version extends { readonly metadata: string }>(
  versionIds: Float64Array,
  read: (versionIds: readonly number[]) => Promise<ReadonlyMap<number, Version>>,
): AsyncGenerator<MetadataPart<Version>> {
  let count = firstVersions;
  for (let first = 0; first < versionIds.length;) {
    const wanted = [...versionIds.subarray(first, first + count)];
    const found = await read(wanted);
    const versions = wanted.flatMap((versionId) => found.get(versionId) ?? []);
    if (versions.length < wanted.length) throw unavailable('the metadata of a document cannot be read');
    yield { first, versions };
    count = nextVersionCount(versions);
    first += wanted.length;
  }
}

/** How many versions the next read shall take, by the size of those that were read. */
function nextVersionCount(versions: readonly { readonly metadata: string }[]): number {
  const characters = versions.reduce((sum, { metadata }) => sum + metadata.length, 0);
  const fitting = Math.floor((partCharactersMax * versions.length) / Math.max(1, characters));
  return Math.min(versionsMax, Math.max(firstVersions, fitting));
}
