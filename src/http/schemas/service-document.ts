/** The general part of the API's OpenAPI document. */
import type { ApiDocument } from './openapi.ts';

export const serviceDocument: ApiDocument = {
  title: 'maxsimd',
  description: `Store documents, and find their chunks by multi-vector search (late interaction).

Send your API key with every request to \`/v1\`, \`/v2\` and \`/rerank\`: \`Authorization: Bearer qkv_live_...\`. Bodies are JSON in UTF-8, at most 5 MiB, and
may be compressed by gzip. Unknown properties are refused. So is a name that occurs twice in one object.

Every error has the \`Error\` body: decide by \`error.code\`. Every answer carries \`x-request-id\`; an id that you send is kept if it
matches \`[A-Za-z0-9._-]{1,128}\`. Ignore fields of answers that you do not know.

The service checks a request in this order: key, suspension, rate, concurrency, address, body, fields, existence. A malformed
address (400, 414) or header (400, 431) is refused before that.

Routes, fields and answers marked \`x-maxsimd-addition\` are maxsimd's own: another service with this interface may lack them.`,
  tags: {
    indexes: 'Named collections of documents, each bound to one model version.',
    documents: 'Texts with metadata, stored in an index as chunks.',
    ranking: 'Search an index, or rank documents that the request brings.',
    usage: 'Usage, limits, and what remains this month.',
    health: 'For load balancers and supervisors. No key is needed.',
    reference: 'This description.',
  },
  keyDescription: 'An API key, `qkv_live_...`.',
  // The console has routes of the API again, under its own path.
  hidden: '/console',
  rated: ['/v1/', '/v2/', '/rerank'],
};
