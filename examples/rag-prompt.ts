/** Imports a folder of Markdown with its texts, and prints a prompt for a language model: `node rag-prompt.ts FOLDER "QUESTION"`. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Maxsimd } from '@maxsimd/client';

const [folder = 'notes', question = 'Where do I begin?'] = process.argv.slice(2);
const files = globSync('**/*.md', { cwd: folder });
const documents = files.map((doc_id) => ({ doc_id, text: readFileSync(path.join(folder, doc_id), 'utf8') }));

// Reads MAXSIMD_URL and MAXSIMD_API_KEY.
const client = new Maxsimd();
const name = path.basename(path.resolve(folder));
const { id } = await client.createIndex({ name, if_exists: 'return' });
const report = await client.import(id, documents, { keepText: 'text', cut: true });
for (const { doc_id, error } of report.failed) console.error(`${doc_id}: ${error}`);

const passage = { from: 'text', context: 200 };
const { results } = await client.search(id, { query: question, top_k: 5, passage, fields: [] });
const sources = results.flatMap((one) =>
  one.passage ? [`[${one.doc_id}]\n${one.passage.text.trim()}`] : [],
);
console.log('Answer from these sources alone. Name those that you used. Say so if they hold no answer.');
console.log(`\n${sources.join('\n\n')}\n\nQuestion: ${question}`);
