/** What the document of the service's interface says of it as a whole. */
import type { ApiDocument } from './openapi.ts';

export const serviceDocument: ApiDocument = {
  title: 'maxsimd',
  description: `Managed multi-vector (late interaction) retrieval.

Every response carries \`x-request-id\`; a client's own is kept when it matches \`[A-Za-z0-9._-]{1,128}\`. Every
non-success response has the \`Error\` body; decide behaviour from \`error.code\`. Bodies are JSON in UTF-8, at most
5 MiB, and may be compressed (\`Content-Encoding: gzip\`; 5 MiB once inflated); unknown properties are refused; of an object key given twice the last value counts. Checks run in this
order: authentication, suspension, rate, concurrency, address, body, fields, existence. A malformed request
target (400, 414) or header (400, 431) is refused before all of them. Clients ignore unknown response fields.

Additions to the interface specification are marked \`x-maxsimd-addition\`. Operating metrics are served on a
separate port.`,
  tags: {
    indexes: 'Named collections of documents, each bound to one model version.',
    documents: 'What an index holds.',
    ranking: 'Search in an index, or rank documents of the request.',
    usage: 'Usage of this month, limits and what remains.',
    health: 'For load balancers and supervisors; without a key.',
    reference: 'This description.',
  },
  keyDescription: 'An API key, `qkv_live_...`.',
  // The console has the routes of the interface again, under its own address.
  hidden: '/console',
  rated: '/v1/',
};
