export { Maxsimd } from './client.ts';
export type { ListOptions, MaxsimdOptions, UpsertOptions } from './client.ts';
export { ApiError, ConnectionError, ImportError, MaxsimdError } from './errors.ts';
export type { ErrorCode, Issue, RequestError } from './errors.ts';
export type {
  ImportBatch,
  ImportDocument,
  ImportFailure,
  ImportOptions,
  ImportProgress,
  ImportReport,
} from './import/import.ts';
export { highlights, passage } from './passages.ts';
export type { Highlight, LocatedResult } from './passages.ts';
export type { AnswerDetails, ApiRequest, RequestOptions } from './transport.ts';
export type {
  Activity,
  Chunking,
  CreateIndex,
  DeleteDocuments,
  DeletedDocuments,
  Document,
  DocumentCount,
  DocumentFailure,
  Facet,
  Facets,
  FacetsRequest,
  Index,
  QueryAnswers,
  QueryItem,
  QueryResult,
  Ranked,
  Readiness,
  Result,
  Score,
  Search,
  StoredDocument,
  TextRange,
  UpsertResult,
  UsageDays,
  UsageOfDay,
  UsageSummary,
} from './types.ts';
