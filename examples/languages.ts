/**
 * Finds texts in languages other than the question's: `node languages.ts "QUESTION"`. It needs the model for many languages
 * (docs/guide/models.md#many-languages).
 */
import { Maxsimd } from '@maxsimd/client';

const [question = 'Wie zeigen Bienen einander den Weg zu Blumen?'] = process.argv.slice(2);
const texts = new Map([
  ['Arabic', 'تحلق النسور عاليا بحثا عن فرائسها.'],
  ['Chinese', '蜜蜂用舞蹈告诉同伴花在哪里。'],
  ['English', 'Whales sing to each other over many miles.'],
  ['Greek', 'Τα μυρμήγκια αφήνουν ίχνη οσμής για να βρουν τροφή.'],
  ['Russian', 'Совы охотятся ночью и слышат каждый шорох.'],
  ['Spanish', 'La ballena azul es el animal más grande que ha existido.'],
]);

// Reads MAXSIMD_URL and MAXSIMD_API_KEY.
const client = new Maxsimd();
const made = { name: 'languages', model: 'e5-small-multilingual-maxsim' };
const indexes = await client.listIndexes();
const { id } = indexes.find(({ name }) => name === made.name) ?? (await client.createIndex(made));
const documents = [...texts].map(([doc_id, text]) => ({ doc_id, text, metadata: { language: doc_id } }));
const report = await client.import(id, documents);
for (const { doc_id, error } of report.failed) console.error(`${doc_id}: ${error}`);

const { results } = await client.search(id, { query: question, top_k: 3 });
for (const { doc_id, score } of results) console.log(`${score.toFixed(2)}  ${doc_id}: ${texts.get(doc_id)}`);
