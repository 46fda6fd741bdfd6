/**
 * Document ids and metadata of versions, kept once read. A version never changes and its number is never used again, not even
 * by a catalog that fell back to an earlier moment, so what is kept cannot be wrong; whether a version still counts is decided by
 * the snapshot that found it. The cache has two halves: when the younger one is full the older one is forgotten.
 */
import type { Catalog, ResolvedVersion } from '../../catalog/contract.ts';

interface Kept {
  readonly indexId: string;
  readonly version: ResolvedVersion;
}

/** Characters of ids and metadata that are kept, both halves together. */
const keptCharactersMax = 16_000_000;
/** What an entry costs beside its text. */
const entryCharacters = 100;

export class VersionResolver {
  readonly #catalog: Pick<Catalog, 'resolveVersions'>;
  readonly #halfCharactersMax: number;
  #young = new Map<number, Kept>();
  #old = new Map<number, Kept>();
  #youngCharacters = 0;

  constructor(catalog: Pick<Catalog, 'resolveVersions'>, charactersMax = keptCharactersMax) {
    this.#catalog = catalog;
    this.#halfCharactersMax = charactersMax / 2;
  }

  /** As `Catalog.resolveVersions`: versions that the index does not know are absent. */
  async resolve(
    indexId: string,
    versionIds: readonly number[],
  ): Promise<ReadonlyMap<number, ResolvedVersion>> {
    const resolved = new Map<number, ResolvedVersion>();
    const unknown: number[] = [];
    for (const versionId of versionIds) {
      const kept = this.#young.get(versionId) ?? this.#old.get(versionId);
      if (kept?.indexId === indexId) {
        resolved.set(versionId, kept.version);
        if (!this.#young.has(versionId)) this.#keep(versionId, kept);
      } else unknown.push(versionId);
    }
    if (unknown.length === 0) return resolved;
    for (const [versionId, version] of await this.#catalog.resolveVersions(indexId, unknown)) {
      resolved.set(versionId, version);
      this.#keep(versionId, { indexId, version });
    }
    return resolved;
  }

  forgetAll(): void {
    this.#young = new Map();
    this.#old = new Map();
    this.#youngCharacters = 0;
  }

  #keep(versionId: number, kept: Kept): void {
    const { docId, metadata } = kept.version;
    this.#young.set(versionId, kept);
    this.#youngCharacters += docId.length + metadata.length + entryCharacters;
    if (this.#youngCharacters <= this.#halfCharactersMax) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngCharacters = 0;
  }
}
