/**
 * The interface specification and our decisions where it is silent, as short exact quotes by id. Titles of end-to-end
 * tests begin with the ids that they show (`[delete-2, delete-3] ...`); `coverage.test.ts` compares both.
 */

/** Quotes of the interface specification, by its sections. */
export const sentences = {
  // Section "What the service does"
  'what-the-service-does-1': 'A tenant creates named indexes, each bound to an immutable model version.',
  'what-the-service-does-2':
    'The tenant upserts documents (source text plus customer metadata) into an index.',
  'what-the-service-does-3': 'Each document is split into chunks.',
  'what-the-service-does-4': 'The tenant searches an index with a query.',
  'what-the-service-does-5':
    'The service returns ranked references to chunks: `doc_id`, `chunk_id`, `chunk_index`, `score`, `metadata`.',
  'what-the-service-does-6': 'It does not return source text.',
  'what-the-service-does-7': 'Callers load the original text from their own datastore using `doc_id`.',
  'what-the-service-does-8':
    'The tenant can rank one to 50 request-local documents for one query without storing them (transient scoring).',
  'what-the-service-does-9': 'The service does not return conventional embedding vectors.',
  'what-the-service-does-10':
    'Everything is tenant-scoped: an API key identifies one tenant, and indexes and usage belong to that tenant.',
  'what-the-service-does-11': 'Transient scoring records an aggregate usage event only.',
  'what-the-service-does-12':
    'The query, documents, chunks and derived representations are not stored as indexed content.',
  'what-the-service-does-13': 'An index has a `text_retention` setting; the only allowed value is `none`.',
  'what-the-service-does-14': 'A metadata filter on search is not an authorization boundary.',
  // Conventions
  'conventions-1': 'The base address is `{base_url}`. All bodies are JSON over HTTPS.',
  'conventions-2':
    'Every response carries the header `x-request-id` (non-empty string, a correlation id for logging and support, not a credential).',
  'conventions-3': 'Clients must not log API keys, query text, document text or whole request bodies.',
  'conventions-4': 'Timestamps are ISO 8601 UTC.',
  'conventions-5':
    'Token totals in the usage summary are decimal strings (to avoid integer precision loss); clients calculate with arbitrary-precision integers.',
  'conventions-6': 'Scores only order results within one response. They have no fixed global range.',
  'conventions-7': 'Clients ignore unknown response fields.',
  // Index
  'index-1': '`id` | string, UUID | Tenant-scoped identifier; used as `{index_id}` in paths.',
  'index-2': '`name` | string, min length 1 | Human-readable; unique within the tenant.',
  'index-3': '`model` | string, min length 1 | Model name. Immutable.',
  'index-4':
    '`model_version` | string, min length 1 | Immutable serving version of this index. Moving to another version means creating a new index and re-ingesting.',
  'index-5': '`text_retention` | string enum: `none`',
  'index-6':
    '`chunking` | object | `strategy` (string, value `token_window`), `max_tokens` (integer), `overlap_tokens` (integer), `minimum_chunk_tokens` (integer).',
  'index-7': '`metadata_schema` | object | Descriptive customer metadata schema recorded with the index.',
  'index-8': '`status` | string enum: `creating`, `ready`, `error`',
  'index-9': '`created_at` | string, ISO 8601 UTC timestamp',
  'index-10':
    '`model` (optional; omit unless explicitly instructed to select a supported model during onboarding)',
  'index-11':
    '`text_retention` (enum `none`), `metadata_schema` (object, descriptive), and one further nested object whose child attributes are not listed.',
  'index-12': 'Default values of the chunking parameters: not shown.',
  'index-13': 'Internal structure of `metadata_schema`: not shown.',
  'index-14': 'Allowed values of `model`: not shown.',
  // Document input
  'document-input-1':
    '`doc_id` | string | yes | Length 1 to 255. Identity of the document within one index (idempotency identity).',
  'document-input-2': '`text` | string | yes | Non-empty, at most 100 KiB encoded as UTF-8.',
  'document-input-3':
    '`metadata` | object | no | Customer-defined top-level JSON object; any additional properties allowed; default `{}`.',
  'document-input-4':
    'The score endpoint takes the same three fields per document (`doc_id` unique within the request).',
  // Result item
  'result-item-1': '`metadata` | object (the metadata of the document)',
  'result-item-2': '`chunk_id` | string (for transient scoring it has the form `transient_<integer>`)',
  // Request usage object
  'request-usage-object-1':
    'All fields are integers, minimum 0: `input_tokens`, `document_count`, `chunk_count`, `candidate_count`, `latency_ms`.',
  'request-usage-object-2':
    'an upsert reports `document_count` and `chunk_count` and has `candidate_count` 0',
  'request-usage-object-3':
    'a search reports `document_count` 0, `chunk_count` equal to the number of returned results, and `candidate_count` as the number of candidates considered',
  'request-usage-object-4':
    'a transient score reports `chunk_count` 0 and `candidate_count` equal to the number of submitted documents',
  // Document failure
  'document-failure-1':
    '`doc_id` (string), `error` (string, a diagnostic message; application behavior must not be parsed from it).',
  // Tenant usage summary
  'tenant-usage-summary-1':
    '`period_start`, `period_end` | ISO 8601 UTC timestamps bounding the current UTC calendar month',
  'tenant-usage-summary-2': '`usage.input_tokens` | string, decimal integer',
  'tenant-usage-summary-3':
    '`usage.requests`, `usage.document_upserts`, `usage.searches`, `usage.scores`, `usage.documents` | integers',
  'tenant-usage-summary-4': '`limits.input_tokens` | string, decimal integer',
  'tenant-usage-summary-5':
    '`limits.documents`, `limits.requests_per_minute`, `limits.max_concurrent_requests` | integers',
  'tenant-usage-summary-6': '`remaining.input_tokens` | string, decimal integer',
  'tenant-usage-summary-7': '`remaining.documents` | integer',
  // States and transitions
  'states-and-transitions-1':
    'A newly created index is returned with a status; the shown creation response has `ready`.',
  'states-and-transitions-2': 'Transitions: not shown.',
  'states-and-transitions-3': 'Documents have no state field.',
  'states-and-transitions-4': 'An upsert with an existing `doc_id` replaces the stored document.',
  'states-and-transitions-5': 'A delete removes it.',
  // Endpoints
  'endpoints-1': 'All `/v1/*` endpoints require authentication (see Authentication).',
  'endpoints-2': 'Request and response bodies are `application/json`.',
  'endpoints-3': 'GET | `/healthz` | none',
  'endpoints-4': 'GET | `/readyz` | none',
  'endpoints-5': 'Response bodies of the health endpoints: not shown.',
  // Create an index
  'create-an-index-1': '`name` is required and must be unique within the tenant.',
  'create-an-index-2': 'Response: an Index object.',
  'create-an-index-3': 'The returned model version is immutable for the index.',
  // List indexes
  'list-indexes-1':
    'Response: `{ data: [Index, ...] }` listing all indexes visible to the authenticated tenant.',
  'list-indexes-2': 'Pagination and ordering of the list: not shown.',
  // Upsert documents
  'upsert-documents-1': '`POST /v1/indexes/{index_id}/documents`',
  'upsert-documents-2': '`documents` is required, 1 to 50 items, and no other top-level property is allowed.',
  'upsert-documents-3': '`doc_id` values are unique within the request.',
  'upsert-documents-4': 'Each item has exactly the fields `doc_id`, `text`, `metadata`.',
  'upsert-documents-5':
    'Response 200: `{ index_id (UUID), upserted_documents (integer >= 0), upserted_chunks (integer >= 0), failed ([DocumentFailure]), usage (request usage object) }`.',
  'upsert-documents-6': 'Each document is created or replaced by `doc_id` within the index.',
  'upsert-documents-7':
    'A syntactically valid batch returns HTTP 200 after all items are evaluated, even if individual items fail.',
  'upsert-documents-8': 'Clients must inspect `failed` before treating the batch as complete.',
  'upsert-documents-9':
    'A document that cannot be processed appears in `failed` and does not count in `upserted_documents`.',
  'upsert-documents-10': 'An example failure is a document that produced no chunks.',
  'upsert-documents-11':
    'A request that fails validation, or would exceed the stored-document allowance, returns 422.',
  'upsert-documents-12': 'Status codes shown for this endpoint: 200, 401, 403, 404, 422, 429, 500, 503.',
  // Delete a document
  'delete-a-document-1': '`DELETE /v1/indexes/{index_id}/documents/{doc_id}`',
  'delete-a-document-2': '`doc_id` (string, length 1 to 255, reserved characters URL-encoded).',
  'delete-a-document-3': 'Response: `{ deleted: boolean }`.',
  'delete-a-document-4': '`deleted` is true when a stored document existed and was removed.',
  'delete-a-document-5': 'Deletion is idempotent: deleting an absent ID succeeds with `deleted` false.',
  // Search an index
  'search-an-index-1': '`POST /v1/indexes/{index_id}/search`',
  'search-an-index-2': '`query` | string | Required, length at least 1, at most 8 KiB as UTF-8.',
  'search-an-index-3': '`top_k` | integer | Optional; maximum final results returned; 1 to 100.',
  'search-an-index-4':
    '`candidate_k` | integer | Optional; retrieval breadth considered before final ranking; 1 to 500.',
  'search-an-index-5': '`filter` | object | Optional; exact matches against top-level metadata fields.',
  'search-an-index-6':
    '`return_components` | boolean | Optional; includes diagnostic component scores when available.',
  'search-an-index-7':
    'Response: `{ results: [Result item, ...], usage: request usage object }`. Results are relevance-ranked chunk references; source text is not included.',
  'search-an-index-8': 'Defaults of `top_k` and `candidate_k`: not shown.',
  'search-an-index-9': 'Default of `return_components` and the shape of the component scores: not shown.',
  // Score transient documents
  'score-transient-documents-1': '`query` (string, required, length at least 1, at most 8 KiB as UTF-8)',
  'score-transient-documents-2':
    '`documents` (array of DocumentInput, required, 1 to 50 items, `doc_id` unique within the request)',
  'score-transient-documents-3':
    '`return_components` (boolean, optional, diagnostic component scores when available).',
  'score-transient-documents-4':
    'The documents are ranked for this one query and are not added to any index.',
  'score-transient-documents-5':
    'Nothing is persisted as indexed content. An aggregate usage event is recorded.',
  // Get usage and limits
  'get-usage-and-limits-1':
    'No request body. Response: the tenant usage summary (see Resources) for the current UTC calendar month, the limits assigned to the tenant, and the remaining token and document allowances.',
  // Status codes
  'status-codes-1':
    'Status codes of all endpoints other than upsert (including the success code of index creation): not shown.',
  // Authentication
  'authentication-1':
    'Every `/v1/*` request carries the header `Authorization: Bearer <API_KEY>` (HTTP bearer scheme).',
  'authentication-2':
    'The API key is tenant-scoped and begins with the prefix `qkv_live_`. It is supplied during onboarding.',
  'authentication-3':
    'The key is used from a trusted machine or backend and is never exposed in browser code.',
  'authentication-4': '`GET /healthz` and `GET /readyz` need no authentication.',
  'authentication-5':
    'A missing, invalid or revoked key returns 401 with error code `authentication_failed`.',
  'authentication-6': 'A suspended tenant returns 403 with error code `tenant_suspended`.',
  'authentication-7':
    'Resources are tenant-scoped; a resource of another tenant is reported as not found (404 `not_found`).',
  'authentication-8': 'Key scopes or permission levels beyond tenant scoping: not shown.',
  // Events
  'events-1':
    'The service records an aggregate usage event for each transient scoring request; it holds no query, document, chunk or derived data.',
  'events-2': 'Events or callbacks delivered to clients: not shown.',
  // Errors
  'errors-1':
    'Error body for every non-success response: `{ error: { code (string), message (string), issues (optional array, field-level validation details) } }`.',
  'errors-2': 'Every error response carries `x-request-id`.',
  'errors-3': '401 | `authentication_failed` | API key missing, invalid or revoked.',
  'errors-4': '403 | `tenant_suspended` | Tenant is suspended.',
  'errors-5': '404 | `not_found` | Tenant-scoped resource not found.',
  'errors-6': '422 | `validation_error` | Request failed validation, or would exceed the document allowance.',
  'errors-7': '429 | `rate_limit_exceeded` | Tenant request rate exceeded.',
  'errors-8': '429 | `concurrency_limit_exceeded` | Tenant concurrency limit exceeded.',
  'errors-9': '429 | `usage_limit_exceeded` | Monthly input-token allowance exhausted.',
  'errors-10': '500 | `internal_error` | Unexpected service failure.',
  'errors-11': '503 | `service_unavailable` | Service temporarily cannot process the request.',
  'errors-12':
    'Every 429 response carries the header `Retry-After` (integer, minimum 1): the minimum seconds before retrying.',
  'errors-13': 'Clients inspect `error.code` and honor it.',
  'errors-14': 'For `concurrency_limit_exceeded`, clients reduce concurrency.',
  'errors-15': 'For `usage_limit_exceeded`, clients stop retrying until the monthly usage period resets.',
  'errors-16':
    'Message texts are diagnostic; behavior is decided from `error.code`, and in an upsert from the items of `failed`, not from message text.',
  'errors-17': 'Item-level upsert failures are not HTTP errors; they come back in a 200 response.',
  'errors-18':
    'The status and code returned for an oversize body, a duplicate index name, or an invalid `index_id`: not shown.',
  // Limits
  'limits-1':
    'Defaults apply unless onboarding assigned different values; `GET /v1/usage` returns the values assigned to the tenant.',
  'limits-2': 'Requests per minute | 60',
  'limits-3': 'Concurrent requests | 2',
  'limits-4': 'Input tokens per UTC month | 50,000,000',
  'limits-5': 'Stored documents | 100,000',
  'limits-6': 'JSON body | 5 MiB',
  'limits-7': 'Documents per upsert or score request | 50 (minimum 1)',
  'limits-8': 'Text per document | 100 KiB (UTF-8)',
  'limits-9': 'Query text | 8 KiB (UTF-8)',
  'limits-10': '`top_k` | 100',
  'limits-11': '`candidate_k` | 500',
  'limits-12': '`doc_id` length | 255',
  'limits-13': 'exceeding request rate, concurrency or the monthly token allowance gives 429 (codes above)',
  'limits-14': 'a request that would exceed the stored-document allowance gives 422',
  'limits-15': 'The usage period is the current UTC calendar month.',
  'limits-16': 'Limits on the size or number of metadata fields and on chunks per document: not shown.',
  // Versioning
  'versioning-1':
    'The API is versioned in the path under `/v1`. The interface description carries version `0.1.0-alpha`.',
  'versioning-2': 'Clients ignore unknown response fields, so fields may be added.',
  'versioning-3': 'Partner-impacting changes are recorded in a changelog.',
  'versioning-4':
    'The model version of an index is immutable; moving to another model version means creating a new index and re-ingesting its documents.',
  'versioning-5': 'Deprecation and compatibility policy beyond these points: not shown.',
} as const;

/** Our decisions where the specification is silent (docs/reference/api.md). */
export const decisions = {
  'decision-1': '201 with `Location`',
  'decision-2':
    'optional nested object `chunking` {max_tokens, overlap_tokens, minimum_chunk_tokens}; unknown properties 422',
  'decision-3': '`token_window`, 256 / 32 / 16',
  'decision-4':
    'bounded by the model’s positions; `overlap_tokens` of new indexes at most half of `max_tokens`',
  'decision-5':
    '`minimum_chunk_tokens` applies to a trailing window (a shorter remainder is joined to the window before it); a document with at least one token always yields a chunk',
  'decision-6': 'any JSON object up to 16 KiB, stored and returned as given (descriptive)',
  'decision-7': '16 KiB serialised per document, depth 16',
  'decision-8': '`__proto__` and the like are data, never prototype',
  'decision-9':
    'JSON equality (1 = 1.0; null is not missing; arrays and objects deeply, key order ignored); several fields AND; up to 16; `{}` = no filter',
  'decision-10': '`top_k` 10',
  'decision-11':
    '`candidate_k` min(500, max(200, 5 x top_k)), an explicit one below top_k is raised to it; `candidate_count` = chunks scored exactly',
  'decision-12':
    '`components: { maxsim, per_query_token: [{token_index, document_token_index, similarity}], candidate_score?, candidate_rank? }` per result; no text, no token strings',
  'decision-13': 'one result per document (its best chunk), best first',
  'decision-14': 'duplicate index name is 422 `validation_error`, issue path `name`',
  'decision-15': 'body over 5 MiB 413 with `validation_error`',
  'decision-16':
    'malformed JSON, wrong types, unknown properties 422; wrong media type 415 with `validation_error`; unknown route 404 `not_found`',
  'decision-17':
    '408, 414, 431 and parser-level 400 keep the error body (`validation_error`) and `x-request-id`',
  'decision-18': 'order of checks: authentication, suspension, rate, concurrency, validation, existence',
  'decision-19': 'unknown `model` 422',
  'decision-20': 'version not loaded 503',
  'decision-21':
    'by `created_at`; without pages unless `limit` or `cursor` asks for one (at most 1,000 indexes a tenant, then 422)',
  'decision-22': 'GET and DELETE `/v1/indexes/{id}`',
  'decision-23': '`/metrics` (separate port)',
  'decision-24': '`RateLimit-*` headers',
  'decision-25': 'interactive docs that need no internet',
  'decision-26': 'additions of ours are marked as such in the OpenAPI document',
  'decision-27':
    'tokens counted are tokenizer tokens of the text, without special tokens and without counting overlaps twice',
  'decision-28':
    'rate limit is a sliding window: never more than N in any 60 s; `Retry-After` is when the next one fits',
  'decision-29': 'every authenticated request counts',
  'decision-30':
    'refused when this request would exceed it (reserved atomically, unused part returned); `Retry-After` = seconds to the next UTC month',
  'decision-31': '`period_end` is the first instant of the next month',
  'decision-32':
    '`requests`: /v1 requests answered, 401 and 429 excluded; `document_upserts`: documents upserted; `documents`: stored now',
  'decision-33':
    'in-flight requests of the tenant, released when the response is closed and its work has ended or been dropped; `Retry-After: 1`',
  'decision-34': '`chunk_id` opaque, unique in the index, stable until the document is replaced',
  'decision-35':
    '`doc_id` length counts Unicode code points; `.` and `..` are refused (they cannot be addressed in a URL path)',
  'decision-36': 'ties by score, then the older document version first, then chunk_index',
  'decision-37':
    'request ids are ours, ULID; a client’s `x-request-id` is accepted if it matches `[A-Za-z0-9._-]{1,128}`',
  'decision-38': 'loopback by default; binding elsewhere without TLS needs an explicit flag (behind a proxy)',
  'decision-39': 'keys are shown once; ten live keys a tenant',
  'decision-40': 'onboarding is `maxsimd tenant create|list|suspend|resume|limits|delete` (delete erases)',
  'decision-41':
    'the default model scores every query token up to its position limit; longer queries are truncated there',
  'decision-42': 'past its deadline a request gets 503 with `Retry-After`, and nothing is stored',
  'decision-43':
    'GET `/v1/indexes/{id}/documents` by the bytes of `doc_id`, in pages; a document that is stored throughout is on one page exactly',
  'decision-44':
    'GET `/v1/indexes/{id}/documents/{doc_id}` and GET `/v1/indexes/{id}/count`; never a text or a vector',
  'decision-45': 'PATCH `/v1/indexes/{id}` renames, or swaps two names in one step',
  'decision-46':
    'PATCH `/v1/indexes/{id}/documents/{doc_id}` replaces the metadata: a new version, not encoded, charged as a request alone',
} as const;
