/** Runs the worked example of the README as it stands there, against a real server. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { oneLanguage } from '../../docs/site/alignment.ts';
import { createTenant } from '../support/commands/command-line.ts';
import { makeScratch, repositoryRoot } from '../support/running/launch.ts';
import { startServer } from '../support/running/server.ts';

const scratch = await makeScratch();
const server = await startServer({ scratch, sharedEncoder: true });

afterAll(async () => {
  await server.stop();
  await scratch.remove();
});

test('the lines of the worked example answer as the README says, however often they are pasted', async () => {
  const readme = await readFile(path.join(repositoryRoot, 'README.md'), 'utf8');
  const script = /## A worked example[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  expect(script).toContain('/search');
  const { key } = await createTenant(server);
  const pasted = script
    .replace(/MAXSIMD_URL=\S+/, `MAXSIMD_URL=${server.url}`)
    .replace(/MAXSIMD_API_KEY=\S+/, `MAXSIMD_API_KEY=${key}`);
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', `${pasted}\n${pasted}`]);
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer);
  expect(answers).toHaveLength(8);
  expect(answers[4]).toEqual(answers[0]);
  for (const [index, upsert, search, score] of [answers.slice(0, 4), answers.slice(4)]) {
    expect(index).toMatchObject({ name: 'first' });
    expect(upsert).toMatchObject({ upserted_documents: 2, failed: [] });
    expect(search?.results?.map(({ doc_id }) => doc_id)).toEqual(['bee', 'whale']);
    expect(score?.results?.map(({ doc_id }) => doc_id)).toEqual(['b', 'a']);
  }
  const [, , search] = answers;
  const shown = JSON.parse(/```json\n([\s\S]*?)```/.exec(readme)?.[1] ?? '{}') as Answer;
  // The last digits depend on the processor.
  for (const [place, result] of (shown.results ?? []).entries()) {
    expect(search?.results?.[place]?.score).toBeCloseTo(result.score, 1);
  }
});

test('the score that the first page of the documents draws is the one of the service', async () => {
  const { key } = await createTenant(server);
  const { query, text, matches } = oneLanguage;
  const response = await fetch(`${server.url}/v1/score`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query, documents: [{ doc_id: 'bee', text }], return_components: true }),
  });
  const { results } = (await response.json()) as Answer;
  const tokens = results?.[0]?.components?.per_query_token ?? [];
  const found = tokens.filter((token) => token.text_range !== undefined);
  expect(found.map(({ text_range: range }) => text.slice(range?.start, range?.end))).toEqual(
    matches.map((match) => match.found),
  );
  for (const [place, { similarity }] of found.entries())
    expect(similarity).toBeCloseTo(matches[place]?.similarity ?? NaN, 1);
});

interface Answer {
  readonly name?: string;
  readonly results?: readonly {
    readonly doc_id: string;
    readonly score: number;
    readonly components?: {
      readonly per_query_token: readonly {
        readonly text_range?: { readonly start: number; readonly end: number };
        readonly similarity: number;
      }[];
    };
  }[];
}
