/** Finds passages in a folder of Markdown: `node rag.ts FOLDER "QUESTION"`. The service keeps no texts: they stay in the folder. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { styleText } from 'node:util';
import { highlights, Maxsimd, passage, type Result } from '@maxsimd/client';

const [folder = 'notes', question = 'Where do I begin?'] = process.argv.slice(2);
const files = globSync('**/*.md', { cwd: folder });
const texts = new Map(files.map((file) => [file, readFileSync(path.join(folder, file), 'utf8')]));

// Reads MAXSIMD_URL and MAXSIMD_API_KEY.
const client = new Maxsimd();
const name = path.basename(path.resolve(folder));
const { id } = await client.createIndex({ name, if_exists: 'return' });
// A document that is sent again replaces the one with its id.
const documents = [...texts].map(([doc_id, text]) => ({ doc_id, text }));
const report = await client.import(id, documents);
for (const { doc_id, error } of report.failed) console.error(`${doc_id}: ${error}`);

const search = { query: question, top_k: 3, return_components: true };
for (const result of (await client.search(id, search)).results) {
  const text = texts.get(result.doc_id);
  if (text === undefined) continue; // The file is gone.
  console.log(`${styleText('bold', result.doc_id)} ${result.score.toFixed(2)}\n${marked(text, result)}\n`);
}

/** The passage, with the words that matched in colour. */
function marked(text: string, result: Result): string {
  const before = Array.from(text).slice(0, result.text_range?.start ?? 0);
  let at = before.join('').length;
  const end = at + passage(text, result).length;
  let shown = '';
  for (const word of highlights(text, result)) {
    if (word.similarity < 0.65) continue;
    shown += text.slice(at, word.start) + styleText('yellow', word.text);
    at = word.end;
  }
  return shown + text.slice(at, end);
}
