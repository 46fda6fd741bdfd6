/** Runs the programs of examples/ as they stand there, against one service. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { missingPython, pythonEnvironment, run } from '../../../clients/tools/install.ts';
import { repositoryRoot } from '../../support/running/launch.ts';
import { useSharedStage } from '../../support/running/stage.ts';

const stage = useSharedStage();
const noPython = missingPython();

async function runExample(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  return run(program, args, repositoryRoot, {
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: stage.tenant.key,
    // Where the command line remembers how far an import is.
    XDG_STATE_HOME: stage.server.scratch.temporary,
    ...environment,
  });
}

test('retrieval in TypeScript puts the right passage first into the prompt, however often it runs', async () => {
  const rag = (...question: string[]): Promise<string> =>
    runExample(process.execPath, ['examples/rag.ts', ...question]);
  const prompt = await rag();
  expect(prompt).toMatch(
    /^Answer [^[]*\n\n\[leave\] Every employee has 28 days[\s\S]*How many days off do I get\?\n$/,
  );
  expect(await rag()).toBe(prompt);
  expect(await rag('what if my computer is stolen?')).toMatch(/^Answer [^[]*\n\n\[laptops\] Report a lost/);
});

test.skipIf(noPython !== undefined)(
  'retrieval in Python prints the same prompt',
  async () => {
    const requirements = path.join(repositoryRoot, 'clients/python/requirements-test.txt');
    const python = path.join(await pythonEnvironment('python', requirements), 'python');
    const packages = path.join(stage.server.scratch.temporary, 'python');
    const quiet = ['--quiet', '--disable-pip-version-check'];
    const options = [...quiet, '--no-deps', '--no-index', '--no-build-isolation', '--target', packages];
    await run(python, ['-m', 'pip', 'install', ...options, './clients/python'], repositoryRoot);
    const printed = await runExample(python, ['examples/rag.py'], { PYTHONPATH: packages });
    expect(printed).toBe(await runExample(process.execPath, ['examples/rag.ts']));
  },
  600_000,
);

test('ranking what another search found puts the right document first', async () => {
  const printed = await runExample(process.execPath, ['examples/rerank.ts']);
  expect(printed).toMatch(/^\d+\.\d\d {2}whale \(was 3\)\n.*\n.*\n$/);
});

test('the import stores every document, and the search finds the right one', async () => {
  const printed = await runExample('bash', ['examples/import.sh']);
  expect(printed).toMatch(/^done +8\nfailed +0$/m);
  expect(printed).toMatch(/^ +1 +[\d.]+ +laptops /m);
});

test('each program has fewer than 80 lines', () => {
  const files = globSync('examples/**/*.{ts,py,sh,yaml}', { cwd: repositoryRoot });
  expect(files.length).toBeGreaterThan(5);
  for (const file of files)
    expect(readFileSync(path.join(repositoryRoot, file), 'utf8').split('\n').length, file).toBeLessThan(80);
});
