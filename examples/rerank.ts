/**
 * Ranks what another search found, with `POST /v1/score`: `node examples/rerank.ts`. Nothing is stored. A request takes up
 * to 50 documents. Scores of two requests compare if query and model are the same.
 */
import { Maxsimd } from '@maxsimd/client';

const query = 'What is the largest animal?';
/** As a search by words might order them. */
const found = [
  { doc_id: 'zoo', text: 'The zoo is open on every day of the week, and its largest hall is heated.' },
  { doc_id: 'elephant', text: 'An elephant is a big animal.' },
  { doc_id: 'whale', text: 'The blue whale is the largest animal that has ever lived.' },
];

// Reads MAXSIMD_URL and MAXSIMD_API_KEY.
const client = new Maxsimd();
const { results } = await client.score({ query, documents: found });
for (const { doc_id, score } of results) {
  const before = found.findIndex((document) => document.doc_id === doc_id) + 1;
  console.log(`${score.toFixed(2)}  ${doc_id} (was ${before})`);
}
