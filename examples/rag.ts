/**
 * Retrieval for a question, and the prompt for a language model of your choice: `node examples/rag.ts "QUESTION"`.
 * The service returns ids and scores, never text, so the texts stay here in a map.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
// In a project of your own: `from '@maxsimd/client'`.
import { Maxsimd, passage } from '../clients/typescript/src/index.ts';

interface Page {
  readonly doc_id: string;
  readonly text: string;
  readonly metadata: { readonly topic: string };
}

const question = process.argv[2] ?? 'How many days off do I get?';
const pages = readFileSync(path.join(import.meta.dirname, 'handbook.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Page);
const texts = new Map(pages.map(({ doc_id, text }) => [doc_id, text]));

const client = new Maxsimd({
  url: process.env['MAXSIMD_URL'] ?? 'http://127.0.0.1:8080',
  apiKey: process.env['MAXSIMD_API_KEY'] ?? '',
});
const indexes = await client.listIndexes();
const index =
  indexes.find(({ name }) => name === 'handbook') ?? (await client.createIndex({ name: 'handbook' }));
// Documents that are sent again replace what was there under their ids.
const report = await client.import(index.id, pages);
for (const { doc_id, error } of report.failed) console.error(`${doc_id}: ${error}`);

const { results } = await client.search(index.id, { query: question, top_k: 3 });
const passages = results.flatMap((result) => {
  const text = texts.get(result.doc_id);
  return text === undefined ? [] : [`[${result.doc_id}] ${passage(text, result)}`];
});

console.log(`Answer the question from the passages alone. Name the passages that you used by their ids.
If they hold no answer, say so.

${passages.join('\n\n')}

Question: ${question}`);
