/** The requests of a tenant's pages. */
import type {
  Activity,
  DeletedDocuments,
  DocumentCount,
  DocumentFailure,
  DocumentList,
  Facets,
  Index,
  IndexList,
  Ranked,
  StoredDocument,
  UpsertResult,
  UsageDays,
  UsageOfDay,
  UsageSummary,
} from '@maxsimd/client';

import { Connection, type Answer } from './connection.ts';
import type { JsonObject } from './parts/json-object.ts';

export type {
  Activity,
  Answer,
  DocumentFailure,
  JsonObject,
  Index,
  Ranked,
  StoredDocument,
  UsageOfDay,
  UsageSummary,
};
export type Result = Ranked['results'][number];

export interface Segment {
  readonly state: 'active' | 'sealed';
  readonly documents: number;
  readonly records: number;
  readonly chunks: number;
  readonly token_vectors: number;
  readonly bytes: number;
  readonly derived_bytes: number;
  readonly centroids: number;
}

export interface IndexDescription {
  readonly documents: number;
  readonly segments: readonly Segment[];
}

export interface IndexContents {
  readonly id: string;
  readonly documents: number;
  readonly chunks: number;
  readonly bytes?: number;
}

/** A model that a new index may have. */
export interface Model {
  readonly name: string;
  readonly is_default: boolean;
}

/** Start and end of each token in its text; equal for special tokens. */
export type Spans = readonly (readonly [number, number])[];

export interface LocatedTokens {
  readonly query: Spans | null;
  readonly document: Spans | null;
}

/** The routes of tenants. */
export class Api extends Connection {
  indexes(): Promise<Answer<IndexList>> {
    return this.ask('GET', 'indexes');
  }

  contents(): Promise<Answer<{ readonly data: readonly IndexContents[] }>> {
    return this.ask('GET', 'contents');
  }

  activity(): Promise<Answer<Activity>> {
    return this.ask('GET', 'activity');
  }

  createIndex(body: JsonObject): Promise<Answer<Index>> {
    return this.ask('POST', 'indexes', body);
  }

  models(): Promise<Answer<{ readonly data: readonly Model[] }>> {
    return this.ask('GET', 'models');
  }

  index(id: string): Promise<Answer<Index>> {
    return this.ask('GET', `indexes/${id}`);
  }

  updateIndex(id: string, body: JsonObject): Promise<Answer<Index>> {
    return this.ask('PATCH', `indexes/${id}`, body);
  }

  deleteIndex(id: string): Promise<Answer<unknown>> {
    return this.ask('DELETE', `indexes/${id}`);
  }

  count(id: string): Promise<Answer<DocumentCount>> {
    return this.ask('GET', `indexes/${id}/count`);
  }

  describe(id: string): Promise<Answer<IndexDescription>> {
    return this.ask('GET', `indexes/${id}/description`);
  }

  usage(): Promise<Answer<UsageSummary>> {
    return this.ask('GET', 'usage');
  }

  usageDays(from: string): Promise<Answer<UsageDays>> {
    return this.ask('GET', `usage/days?from=${from}`);
  }

  search(id: string, body: JsonObject): Promise<Answer<Ranked>> {
    return this.ask('POST', `indexes/${id}/search`, body);
  }

  score(body: JsonObject): Promise<Answer<Ranked>> {
    return this.ask('POST', 'score', body);
  }

  tokens(body: JsonObject): Promise<Answer<LocatedTokens>> {
    return this.ask('POST', 'tokens', body);
  }

  /** Those that `where` matches, or all. */
  documents(id: string, limit: number, cursor?: string, where?: JsonObject): Promise<Answer<DocumentList>> {
    if (where !== undefined)
      return this.ask('POST', `indexes/${id}/documents/list`, { where, limit, cursor });
    const after = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    return this.ask('GET', `indexes/${id}/documents?limit=${limit}${after}`);
  }

  document(id: string, docId: string): Promise<Answer<StoredDocument>> {
    return this.ask('GET', documentPath(id, docId));
  }

  /** `metadata`: JSON text, sent as it is. `expiresAt`: null = never; absent = as it is. */
  changeDocument(
    id: string,
    docId: string,
    { field, metadata, expiresAt }: DocumentChange,
  ): Promise<Answer<StoredDocument>> {
    const expiry = expiresAt === undefined ? '' : `,"expires_at":${JSON.stringify(expiresAt)}`;
    return this.ask('PATCH', documentPath(id, docId), `{"${field}":${metadata}${expiry}}`);
  }

  deleteDocument(id: string, docId: string): Promise<Answer<unknown>> {
    return this.ask('DELETE', documentPath(id, docId));
  }

  deleteMatching(id: string, where: JsonObject): Promise<Answer<DeletedDocuments>> {
    return this.ask('POST', `indexes/${id}/documents/delete`, { where });
  }

  facets(id: string, body: JsonObject): Promise<Answer<Facets>> {
    return this.ask('POST', `indexes/${id}/facets`, body);
  }

  /** `documents`: JSON texts, sent as they are. `expiresAt`: null = never. */
  upsert(id: string, documents: readonly string[], expiresAt: string | null): Promise<Answer<UpsertResult>> {
    const query = expiresAt === null ? '' : `?expires_at=${expiresAt}`;
    return this.ask('POST', `indexes/${id}/documents${query}`, `{"documents":[${documents.join(',')}]}`);
  }
}

export interface DocumentChange {
  /** Whether the metadata replace the stored ones, or are merged into them. */
  readonly field: 'metadata' | 'metadata_merge';
  readonly metadata: string;
  readonly expiresAt: string | null | undefined;
}

function documentPath(indexId: string, docId: string): string {
  return `indexes/${indexId}/documents/${encodeURIComponent(docId)}`;
}
