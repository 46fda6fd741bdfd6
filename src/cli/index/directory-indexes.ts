/** Indexes in a data directory. A server may run beside the command that reads them. */
import type { Catalog } from '../../catalog/contract.ts';
import { catalogFile } from '../../catalog/sqlite/catalog-files.ts';
import type { IndexState } from '../../contracts/index-state.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import { messageOf } from '../failure.ts';
import type { StoredFile, StoredIndexes } from './stored-indexes.ts';

/** Versions that are read at once. */
const versionsRead = 1_000;

type ReadCatalog = Pick<Catalog, 'loadIndexState' | 'listIndexIds' | 'resolveVersions'>;

export function directoryIndexes(
  catalog: ReadCatalog,
  blobs: Pick<BlobStore, 'open' | 'list'>,
): StoredIndexes {
  const fileOf = ({ name, bytes }: { readonly name: string; readonly bytes: number }): StoredFile => ({
    name,
    key: name,
    bytes,
    open: () => blobs.open(name),
  });
  return {
    async read(indexId) {
      // The files are listed first. So a file that the catalog does not name is none that a server has just made.
      const files = (await blobs.list(`${indexId}/`)).map(fileOf);
      const state = await stateOf(catalog, indexId);
      if (state === undefined) return undefined;
      const segments = state.segments.map((row) => ({
        ...row,
        own: files.find(({ name }) => name === row.blob) ?? fileOf({ name: row.blob, bytes: 0 }),
        derived: files.filter(({ name }) => name.startsWith(`${row.blob}.`) && !name.endsWith('.tmp')),
      }));
      const known = new Set(segments.flatMap(({ own, derived }) => [own, ...derived]));
      return { ...state, segments, others: files.filter((file) => !known.has(file)) };
    },
    async names({ indexId, id }) {
      const state = await stateOf(catalog, indexId);
      return state !== undefined && state.segments.some((segment) => segment.id === id);
    },
    /** Reads the documents, and so the pages that they lie on. */
    async documentProblems(indexId, { versions: { versionIds } }) {
      try {
        for (let first = 0; first < versionIds.length; first += versionsRead)
          await catalog.resolveVersions(indexId, [...versionIds.subarray(first, first + versionsRead)]);
        return [];
      } catch (error) {
        const problem = `its documents cannot be read: ${messageOf(error)}`;
        return [{ index_id: indexId, file: catalogFile, problem }];
      }
    },
    release: () => Promise.resolve(),
  };
}

/** The state of an index in the catalog; `undefined` if it was deleted meanwhile. */
async function stateOf(
  catalog: Pick<Catalog, 'loadIndexState' | 'listIndexIds'>,
  indexId: string,
): Promise<IndexState | undefined> {
  try {
    return await catalog.loadIndexState(indexId);
  } catch (error) {
    if ((await catalog.listIndexIds()).includes(indexId)) throw error;
    return undefined;
  }
}
