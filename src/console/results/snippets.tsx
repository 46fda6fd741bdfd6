/** The search on the screen, as a person would send it from a program. */
import { useState } from 'preact/hooks';
import type { JsonObject } from '../api.ts';
import { serviceUrl } from '../connection.ts';
import { shellQuoted } from '../format.ts';
import { Copy } from '../parts/copy.tsx';

const languages = { curl, TypeScript: typescript, Python: python } as const;
type Language = keyof typeof languages;

export function Snippets({ indexId, body }: { indexId: string; body: JsonObject }) {
  const [language, setLanguage] = useState<Language>('curl');
  const text = languages[language](indexId, body);
  return (
    <details>
      <summary>This search as code</summary>
      <div class="stacked">
        <div class="row" role="group" aria-label="Language">
          {(Object.keys(languages) as Language[]).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === language}
              onClick={() => setLanguage(name)}
            >
              {name}
            </button>
          ))}
          <Copy text={text} />
        </div>
        <pre class="snippet" tabIndex={0} aria-label={`Search in ${language}`}>
          {text}
        </pre>
        <p class="quiet">MAXSIMD_URL and MAXSIMD_API_KEY hold the address of the service and a key.</p>
      </div>
    </details>
  );
}

function curl(indexId: string, body: JsonObject): string {
  return `export MAXSIMD_URL=${serviceUrl}
curl -sS "$MAXSIMD_URL/v1/indexes/${indexId}/search" \\
  -H "Authorization: Bearer $MAXSIMD_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shellQuoted(JSON.stringify(body))}`;
}

function typescript(indexId: string, body: JsonObject): string {
  return `import { Maxsimd } from '@maxsimd/client';

const client = new Maxsimd();
const { results } = await client.search('${indexId}', ${JSON.stringify(body, undefined, 2)});
for (const { doc_id, score } of results) console.log(score.toFixed(2), doc_id);`;
}

function python(indexId: string, { query, ...options }: JsonObject): string {
  const named = Object.entries(options).map(([name, value]) => `    ${name}=${pythonValue(value)},\n`);
  return `from maxsimd import Maxsimd

client = Maxsimd()
ranked = client.search(
    "${indexId}",
    ${JSON.stringify(query)},
${named.join('')})
for result in ranked.results:
    print(f"{result.score:.2f} {result.doc_id}")`;
}

function pythonValue(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`);
  return `{${members.join(', ')}}`;
}
