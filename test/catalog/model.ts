/** A simple model of the catalog: one tenant, arrays and maps, nothing durable. */

export interface ModelVersion {
  readonly docId: string;
  readonly versionId: number;
  readonly metadata: string;
  segmentId: number;
  record: number;
  readonly born: number;
  readonly expiresAtMs?: number;
  died: number;
}

export interface ModelSegment {
  readonly id: number;
  sealed: boolean;
  nextRecord: number;
}

export interface ModelIndex {
  readonly id: string;
  generation: number;
  versions: ModelVersion[];
  segments: ModelSegment[];
}

export class Model {
  readonly indexes = new Map<string, ModelIndex>();
  documentsMax = 8;
  inputTokens = 0n;
  requests = 0;
  searches = 0;
  nowMs = 0;

  live(index: ModelIndex): ModelVersion[] {
    return index.versions.filter(({ died }) => died === 0);
  }

  /** An expired version is in no answer any more, although it is still stored. */
  isExpired({ expiresAtMs }: ModelVersion): boolean {
    return expiresAtMs !== undefined && expiresAtMs <= this.nowMs;
  }

  /** Ends the versions that have expired. Returns their ids. */
  expire(index: ModelIndex): readonly number[] {
    const expired = this.live(index).filter((version) => this.isExpired(version));
    if (expired.length > 0) index.generation++;
    for (const version of expired) version.died = index.generation;
    return expired.map(({ versionId }) => versionId);
  }

  get documents(): number {
    return [...this.indexes.values()].reduce((total, index) => total + this.live(index).length, 0);
  }

  /** Returns the outcome. Changes the rows if it is `committed`. */
  upsert(index: ModelIndex, documents: readonly ModelVersion[]): 'committed' | 'document_allowance_exceeded' {
    const docIds = new Set(documents.map(({ docId }) => docId));
    const replaced = this.live(index).filter(({ docId }) => docIds.has(docId));
    const added = documents.length - replaced.length;
    if (added > 0 && this.documents + added > this.documentsMax) return 'document_allowance_exceeded';
    index.generation++;
    for (const version of replaced) version.died = index.generation;
    index.versions.push(...documents.map((version) => ({ ...version, born: index.generation })));
    return 'committed';
  }

  delete(index: ModelIndex, docId: string): 'committed' | 'absent' {
    const version = this.live(index).find((candidate) => candidate.docId === docId);
    if (version === undefined) return 'absent';
    index.generation++;
    version.died = index.generation;
    return 'committed';
  }

  forget(index: ModelIndex, generation: number): number {
    const before = index.versions.length;
    index.versions = index.versions.filter(({ died }) => died === 0 || died > generation);
    return before - index.versions.length;
  }

  /** The versions that `loadIndexState` must return. Versions without a segment are not among them. */
  placed(index: ModelIndex): ModelVersion[] {
    return index.versions
      .filter(({ segmentId }) => segmentId !== 0)
      .toSorted((one, two) => one.segmentId - two.segmentId || one.record - two.record);
  }
}
