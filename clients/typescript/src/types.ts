/** Short names for the objects of the OpenAPI document. */
import type { components } from './schema.ts';

type Schemas = components['schemas'];

export type Activity = Schemas['Activity'];
export type Chunking = Schemas['Chunking'];
export type CreateIndex = Schemas['CreateIndexInput'];
export type DeleteDocuments = Schemas['DeleteDocumentsInput'];
export type DeletedDocuments = Schemas['DeletedDocuments'];
export type Deleted = Schemas['Deleted'];
export type Document = Schemas['DocumentInput'];
export type DocumentCount = Schemas['DocumentCount'];
export type DocumentFailure = Schemas['DocumentFailure'];
export type DocumentList = Schemas['DocumentList'];
export type ErrorDetail = Schemas['ErrorDetail'];
export type Facet = Schemas['Facet'];
export type Facets = Schemas['Facets'];
export type FacetsRequest = Schemas['FacetsRequestInput'];
export type Index = Schemas['Index'];
export type IndexList = Schemas['IndexList'];
export type ListDocuments = Schemas['ListDocumentsInput'];
export type QueryAnswers = Schemas['QueryAnswers'];
export type QueryItem = Schemas['QueryItemInput'];
export type QueryResult = Schemas['QueryResult'];
export type Ranked = Schemas['Ranked'];
export type Readiness = Schemas['Readiness'];
export type Reranked = Schemas['Reranked'];
export type Result = Schemas['Result'];
export type Score = Schemas['ScoreInput'];
export type Search = Schemas['SearchInput'];
export type StoredDocument = Schemas['StoredDocument'];
export type TextRange = Schemas['TextRange'];
export type UpsertResult = Schemas['UpsertResult'];
export type UsageDays = Schemas['UsageDays'];
export type UsageOfDay = Schemas['UsageOfDay'];
export type UsageSummary = Schemas['UsageSummary'];
