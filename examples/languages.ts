/**
 * Finds texts in languages other than the question's: `node languages.ts "QUESTION"`. It needs the model for many languages
 * (docs/guide/models.md#many-languages).
 */
import { Maxsimd } from '@maxsimd/client';

const [question = 'Wie erfahren Bienen, wo Blumen sind?'] = process.argv.slice(2);
const texts = new Map([
  ['Arabic', 'تبني النسور أعشاشها على الصخور العالية، وترى فرائسها من مسافة بعيدة.'],
  ['Chinese', '蜜蜂采蜜归来，在蜂巢里跳舞，告诉同伴花在哪个方向，有多远。'],
  ['English', 'Male humpback whales sing for hours. Others hear them many miles away.'],
  ['Greek', 'Οι χελώνες γεννούν τα αυγά τους στην άμμο και επιστρέφουν στη θάλασσα.'],
  ['Russian', 'Совы охотятся ночью. Они слышат мышь даже под снегом.'],
  ['Spanish', 'La ballena azul mide hasta treinta metros. Ningún otro animal es tan grande.'],
]);

// Reads MAXSIMD_URL and MAXSIMD_API_KEY.
const client = new Maxsimd();
const model = 'e5-small-multilingual-maxsim';
const { id } = await client.createIndex({ name: 'languages', model, if_exists: 'return' });
const documents = [...texts].map(([doc_id, text]) => ({ doc_id, text, metadata: { language: doc_id } }));
const report = await client.import(id, documents);
for (const { doc_id, error } of report.failed) console.error(`${doc_id}: ${error}`);

const { results } = await client.search(id, { query: question, top_k: 3 });
for (const { doc_id, score } of results) console.log(`${score.toFixed(2)}  ${doc_id}: ${texts.get(doc_id)}`);
