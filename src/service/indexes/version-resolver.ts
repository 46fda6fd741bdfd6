/**
 * Keeps document ids and metadata of versions once they were read. A version never changes and its number is never used again,
 * even by a catalog that fell back to an earlier moment. So a kept version is never wrong, and the snapshot that found it
 * decides whether it still counts.
 */
import { LRUCache } from 'lru-cache';
import type { Catalog, StoredDocument } from '../../catalog/contract.ts';

interface Kept {
  readonly indexId: string;
  readonly version: StoredDocument;
}

/** Characters of ids and metadata that are kept. */
const keptCharactersMax = 16_000_000;
/** Characters that an entry counts beside its text. */
const entryCharacters = 100;

export class VersionResolver {
  readonly #catalog: Pick<Catalog, 'resolveVersions'>;
  readonly #kept: LRUCache<number, Kept>;

  constructor(catalog: Pick<Catalog, 'resolveVersions'>, charactersMax = keptCharactersMax) {
    this.#catalog = catalog;
    this.#kept = new LRUCache({
      maxSize: charactersMax,
      sizeCalculation: ({ version }) => version.docId.length + version.metadata.length + entryCharacters,
    });
  }

  /** Does what `Catalog.resolveVersions` does: versions that the index does not know are absent. */
  async resolve(
    indexId: string,
    versionIds: readonly number[],
  ): Promise<ReadonlyMap<number, StoredDocument>> {
    const resolved = new Map<number, StoredDocument>();
    const unknown: number[] = [];
    for (const versionId of versionIds) {
      const kept = this.#kept.get(versionId);
      if (kept?.indexId === indexId) resolved.set(versionId, kept.version);
      else unknown.push(versionId);
    }
    if (unknown.length === 0) return resolved;
    for (const [versionId, version] of await this.#catalog.resolveVersions(indexId, unknown)) {
      resolved.set(versionId, version);
      this.#kept.set(versionId, { indexId, version });
    }
    return resolved;
  }

  forgetAll(): void {
    this.#kept.clear();
  }
}
