/** The three ways to fill an empty index. */
import type { Index } from '../api.ts';
import { serviceUrl } from '../connection.ts';
import { shellQuoted } from '../format.ts';

export function EmptyIndex({ index: { id, name }, mayChange }: { index: Index; mayChange: boolean }) {
  return (
    <section class="panel" aria-label="Empty index">
      <h2>This index is empty</h2>
      {mayChange ? (
        <>
          <p>
            Here: upload or paste JSON lines, CSV or text under{' '}
            <a href={`#/indexes/${id}/documents`}>Documents, Add documents</a>.
          </p>
          <p>By the command line, for files and folders of any size:</p>
          <pre class="snippet" tabIndex={0} aria-label="Fill the index by the command line">
            {`export MAXSIMD_URL=${serviceUrl}
npm run --silent maxsimd -- import documents.jsonl --index ${shellQuoted(name)}`}
          </pre>
          <p>Over the API:</p>
          <pre class="snippet" tabIndex={0} aria-label="Fill the index over the API">
            {`export MAXSIMD_URL=${serviceUrl}
curl -sS "$MAXSIMD_URL/v1/indexes/${id}/documents" \\
  -H "Authorization: Bearer $MAXSIMD_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"documents": [{"doc_id": "first", "text": "Bees dance.", "metadata": {"title": "Bees"}}]}'`}
          </pre>
          <p class="quiet">MAXSIMD_API_KEY holds a key that may write.</p>
        </>
      ) : (
        <p>This API key may only read. Another key must add documents.</p>
      )}
    </section>
  );
}
