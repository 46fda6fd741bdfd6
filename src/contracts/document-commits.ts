/** A commit of documents. The catalog decides it, and the index holds its records. Neither knows the other. */
import type { NamedSegment, RecordLocation } from './index-state.ts';

export interface DocumentVersion extends RecordLocation {
  readonly docId: string;
  /** Immutable, unique in the catalog, never reused; from `allocateIds`. */
  readonly versionId: number;
  /** JSON text of the customer's object, as given. */
  readonly metadata: string;
  readonly chunkCount: number;
  readonly tokenVectors: number;
  /** From then on the document is in no answer. Milliseconds since the epoch; absent = it does not expire. */
  readonly expiresAtMs?: number;
}

/** Counter increments of one answered request; omitted counters are 0. The caller also counts `requests`. */
export interface UsageEvent {
  readonly tenantId: string;
  readonly month: string;
  readonly requests?: number;
  readonly inputTokens?: bigint;
  readonly documentUpserts?: number;
  readonly searches?: number;
  readonly scores?: number;
  /** The tenant's rate window after this request. It replaces the one before (`rateWindows`). */
  readonly rateWindow?: Uint8Array | undefined;
}

export interface NewVersion extends DocumentVersion {
  /** The version that this one replaces. If another version or none is live, nothing is committed. Absent = any. */
  readonly replaces?: number;
}

export interface CommitUpsertInput {
  readonly tenantId: string;
  readonly indexId: string;
  /** At least one; doc ids unique. */
  readonly documents: readonly NewVersion[];
  /** Documents that the tenant may store, these included. */
  readonly documentsMax: number;
  readonly usage: UsageEvent;
  /** Input tokens that the tenant may use in the month of `usage`. Given for a catalog that several processes share. */
  readonly inputTokensMax?: bigint;
  /** Segments that this commit is the first to name, or that a commit of this node named just before. */
  readonly segments?: readonly NamedSegment[];
}

export interface DeadVersion extends RecordLocation {
  readonly docId: string;
  readonly versionId: number;
}

export type CommitUpsertResult =
  | { readonly outcome: 'committed'; readonly generation: number; readonly died: readonly DeadVersion[] }
  | { readonly outcome: 'index_missing' }
  /** A version that should be replaced is no longer live. */
  | { readonly outcome: 'document_changed' }
  | { readonly outcome: 'document_allowance_exceeded'; readonly documents: number }
  /** Only from a catalog that several processes share, because no process can reserve tokens for all. */
  | { readonly outcome: 'token_allowance_exceeded' };
