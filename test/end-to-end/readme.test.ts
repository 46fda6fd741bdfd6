/** Runs the worked example of the README as it stands there, against a real server. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { createTenant } from '../support/running/command-line.ts';
import { makeScratch, repositoryRoot } from '../support/running/launch.ts';
import { startServer } from '../support/running/server.ts';

const scratch = await makeScratch();
const server = await startServer({ scratch });

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
  expect(answers).toHaveLength(6);
  for (const [upsert, search, score] of [answers.slice(0, 3), answers.slice(3)]) {
    expect(upsert).toMatchObject({ upserted_documents: 2, failed: [] });
    expect(search?.results?.map(({ doc_id }) => doc_id)).toEqual(['bee', 'whale']);
    expect(score?.results?.map(({ doc_id }) => doc_id)).toEqual(['b', 'a']);
  }
  const [, search] = answers;
  const shown = JSON.parse(/```json\n([\s\S]*?)```/.exec(readme)?.[1] ?? '{}') as Answer;
  // The last digits depend on the processor.
  for (const [place, result] of (shown.results ?? []).entries()) {
    expect(search?.results?.[place]?.score).toBeCloseTo(result.score, 1);
  }
});

interface Answer {
  readonly results?: readonly { readonly doc_id: string; readonly score: number }[];
}
