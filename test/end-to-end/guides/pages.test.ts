/** Runs the commands of pages as they stand there, from the first block to the last, against a real service. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../../clients/tools/generate.ts';
import { documentCommands, documentText } from './document-commands.ts';
import { useSharedStage } from '../../support/running/stage.ts';

const stage = useSharedStage();

/** Runs the commands of a page and returns their answers, one a line. An error among them fails the test. */
async function answersOf(page: string): Promise<readonly Record<string, never>[]> {
  const script = (await documentCommands(page))
    .replace(/MAXSIMD_URL=http\S+/, `MAXSIMD_URL=${stage.server.url}`)
    .replace(/MAXSIMD_API_KEY=qkv\S+/, `MAXSIMD_API_KEY=${stage.tenant.key}`);
  expect(script).toContain('api ');
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    env: { ...process.env, MAXSIMD_URL: stage.server.url, MAXSIMD_API_KEY: stage.tenant.key },
  });
  const answers = stdout
    .trim()
    .split(/\n+|(?<=\})(?=\{)/)
    .map((line) => JSON.parse(line) as Record<string, never>);
  for (const answer of answers) expect(answer).not.toHaveProperty('error');
  return answers;
}

test('the examples of the HTTP API run one after the other', async () => {
  const answers = await answersOf('reference/api.md');
  expect(answers).toContainEqual({ deleted: true });
  expect(answers).toContainEqual({ deleted: 1, more: false });
  expect(answers).toContainEqual({ documents: 1, chunks: 1 });
});

test('the page of the HTTP API names every route, and no other', async () => {
  const { paths } = JSON.parse(await openApiDocument()) as { paths: Record<string, object> };
  const routes = Object.entries(paths).flatMap(([address, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${address}`),
  );
  const rows = [...(await documentText('reference/api.md')).matchAll(/^\| (`[A-Z]+ \/.*?) \|/gm)];
  const named = rows.flatMap(([, cell = '']) => [...cell.matchAll(/`(.+?)`/g)].map(([, route]) => route));
  expect(new Set(named)).toEqual(new Set(routes));
  expect(named).toHaveLength(routes.length);
});

test('the filters of the guide find the documents that it says', async () => {
  const found = (await answersOf('guide/filter.md')).flatMap(({ results = [] }: { results?: Found[] }) =>
    results.length === 0
      ? []
      : [results.flatMap((one) => (one.results ?? [one]).map(({ doc_id: id }) => id))],
  );
  expect(found.map((ids) => ids.toSorted((one, other) => Number(one) - Number(other)))).toEqual([
    ['2'],
    ['3'],
    ['1', '2'],
    ['2'],
    ['1', '3'],
    ['4'],
    ['3'],
  ]);
});

test('the documents of the guide expire, and are deleted, as it says', async () => {
  const answers = await answersOf('guide/delete.md');
  expect(
    answers.map(({ doc_id: id, expires_at: at }) => [id, at]).filter(([id]) => id !== undefined),
  ).toEqual([
    ['summer', '2099-08-31T18:00:00.000Z'],
    ['winter', undefined],
    ['summer', '2099-08-31T18:00:00.000Z'],
  ]);
  expect(answers.slice(-2)).toEqual([{ deleted: 1, more: false }, { deleted: true }]);
});

interface Found {
  readonly doc_id?: string;
  readonly results?: readonly Found[];
}
