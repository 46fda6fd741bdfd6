/**
 * A newcomer's application: searches the index that the file `current-index` names, one query after another, until its
 * standard input ends. A line of JSON says when answers come from another index, and the last one what was seen. No
 * request is repeated: each failure counts.
 */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Maxsimd } from '@maxsimd/client';

const client = new Maxsimd({
  url: process.env['MAXSIMD_URL'] ?? '',
  apiKey: process.env['MAXSIMD_API_KEY'] ?? '',
  retryMsMax: 0,
});
const queries = JSON.parse(readFileSync('queries.json', 'utf8')) as readonly string[];
const print = (line: object): void => console.log(JSON.stringify(line));

let answered = 0;
const failures: string[] = [];
let answering = '';
const over = new AbortController();
process.stdin.resume().once('end', () => over.abort());

for (;;) {
  // One search more begins after the end of standard input.
  const isLast = over.signal.aborted;
  const index = readFileSync('current-index', 'utf8');
  const query = queries[(answered + failures.length) % queries.length] ?? '';
  try {
    const { results } = await client.search(index, { query, top_k: 5 });
    if (results.length === 0) throw new Error('no results');
    answered += 1;
    if (index !== answering) print({ answering: (answering = index) });
  } catch (error) {
    failures.push(String(error));
  }
  if (isLast) break;
  await setTimeout(20);
}
print({ answered, failures });
