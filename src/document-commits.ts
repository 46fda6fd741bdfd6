/**
 * What a commit of documents says, to the catalog that decides it and to the index whose records it names: neither
 * knows the other.
 */
import type { NamedSegment, RecordLocation } from './index-state.ts';

export interface DocumentVersion extends RecordLocation {
  readonly docId: string;
  /** Immutable, unique in the catalog, never reused; from `allocateIds`. */
  readonly versionId: number;
  /** JSON text of the customer's object, as given. */
  readonly metadata: string;
  readonly chunkCount: number;
  readonly tokenVectors: number;
}

/** Counter increments of one answered request; omitted counters are 0. `requests` is counted by the caller too. */
export interface UsageEvent {
  readonly tenantId: string;
  /** UTC month `YYYY-MM`. */
  readonly month: string;
  readonly requests?: number;
  readonly inputTokens?: bigint;
  readonly documentUpserts?: number;
  readonly searches?: number;
  readonly scores?: number;
  /** The tenant's rate window after this request, kept in place of the one before (`rateWindows`). */
  readonly rateWindow?: Uint8Array | undefined;
}

export interface NewVersion extends DocumentVersion {
  /** The version that it takes the place of: while another one is live, or none, nothing is committed. Absent = any. */
  readonly replaces?: number;
}

export interface CommitUpsertInput {
  readonly tenantId: string;
  readonly indexId: string;
  /** At least one; doc ids unique. */
  readonly documents: readonly NewVersion[];
  /** Stored-document allowance of the tenant; counted over these documents. */
  readonly documentsMax: number;
  readonly usage: UsageEvent;
  /** Input tokens of the month in `usage` that the tenant may use: decided by a catalog that several processes share. */
  readonly inputTokensMax?: bigint;
  /** Segments that this commit names first: `uploading` until now, or named by a commit of the same node just before. */
  readonly segments?: readonly NamedSegment[];
}

export interface DeadVersion extends RecordLocation {
  readonly docId: string;
  readonly versionId: number;
}

export type CommitUpsertResult =
  | { readonly outcome: 'committed'; readonly generation: number; readonly died: readonly DeadVersion[] }
  | { readonly outcome: 'index_missing' }
  /** A version that was to be replaced is not live any more. */
  | { readonly outcome: 'document_changed' }
  | { readonly outcome: 'document_allowance_exceeded'; readonly documents: number }
  /** Decided by a catalog that several processes share: no reservation in one of them can. */
  | { readonly outcome: 'token_allowance_exceeded' };
