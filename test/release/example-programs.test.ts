/** Runs the programs of examples/ as they stand there, against one service: those of a client in a folder of their own. */
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { missingPython, pythonEnvironment, run } from '../../clients/tools/install.ts';
import { twoLanguages } from '../../docs/site/alignment.ts';
import { manyLanguagesModel } from '../support/encoder/models.ts';
import { typeScriptProject } from '../support/typescript-project.ts';
import { repositoryRoot } from '../support/running/launch.ts';
import { expectReply } from '../support/running/client.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { rankedWithComponents } from '../support/running/wire.ts';
import { useSharedStage } from '../support/running/stage.ts';

const stage = useSharedStage();
const noPython = missingPython();
const examples = path.join(repositoryRoot, 'examples');
let project: string;

beforeAll(async () => {
  project = await typeScriptProject(stage.server.scratch.temporary);
  for (const program of ['rag.ts', 'rag.py', 'rag-prompt.ts', 'rag_prompt.py', 'rerank.ts', 'languages.ts'])
    copyFileSync(path.join(examples, program), path.join(project, program));
  mkdirSync(path.join(project, 'notes/office'), { recursive: true });
  for (const line of readFileSync(path.join(examples, 'handbook.jsonl'), 'utf8').trim().split('\n')) {
    const { doc_id: name, text } = JSON.parse(line) as { readonly doc_id: string; readonly text: string };
    writeFileSync(path.join(project, 'notes/office', `${name}.md`), `# 🐋 ${name}\n\n${text}\n`);
  }
});

async function runExample(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  folder = project,
): Promise<string> {
  return run(program, args, folder, {
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: stage.tenant.key,
    // Where the command line remembers how far an import is.
    XDG_STATE_HOME: stage.server.scratch.temporary,
    ...environment,
  });
}

describe('the search in a folder of Markdown', () => {
  const rag = (question: string, environment?: Readonly<Record<string, string>>): Promise<string> =>
    runExample(process.execPath, ['rag.ts', 'notes', question], environment);
  const question = 'what if my computer is stolen?';

  test('prints the right passage first, however often it runs', async () => {
    const printed = await rag(question);
    expect(printed).toMatch(
      /^office\/laptops\.md \d\.\d\d\n# 🐋 laptops\n\nReport a lost [^\n]*\n\noffice\//,
    );
    expect(await rag(question)).toBe(printed);
    expect(await rag('How many days off do I get?')).toMatch(/^office\/leave\.md /);
  });

  test('shows in a terminal which words matched', async () => {
    const printed = await rag(question, { FORCE_COLOR: '1' });
    expect(printed).toContain('\u001B[1moffice/laptops.md\u001B[22m');
    expect(printed).toContain('\u001B[33mstolen\u001B[39m');
  });

  test.skipIf(noPython !== undefined)('prints the same in Python', async () => {
    const { python, packages } = await pythonWithClient();
    const terminal = ['-c', 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))', python];
    const args = ['rag.py', 'notes', question];
    const environment = { PYTHONPATH: packages };
    expect(await runExample(python, args, environment)).toBe(await rag(question));
    const coloured = await rag(question, { FORCE_COLOR: '1' });
    expect((await runExample(python, [...terminal, ...args], environment)).replaceAll('\r\n', '\n')).toBe(
      coloured.replaceAll(/\[(22|39)m/g, '[0m'),
    );
  });
});

async function pythonWithClient(): Promise<{ readonly python: string; readonly packages: string }> {
  const requirements = path.join(repositoryRoot, 'clients/python/requirements-test.txt');
  const python = path.join(await pythonEnvironment('python', requirements), 'python');
  const packages = path.join(stage.server.scratch.temporary, 'python');
  const quiet = ['--quiet', '--disable-pip-version-check', '--upgrade'];
  const options = [...quiet, '--no-deps', '--no-index', '--no-build-isolation', '--target', packages];
  await run(python, ['-m', 'pip', 'install', ...options, './clients/python'], repositoryRoot);
  return { python, packages };
}

describe('the prompt from a folder of Markdown', () => {
  const args = ['notes', 'what if my computer is stolen?'];
  const prompt = (): Promise<string> => runExample(process.execPath, ['rag-prompt.ts', ...args]);

  test('has the right passage first, with its source, and the question last', async () => {
    const printed = await prompt();
    expect(printed).toMatch(
      /^Answer from these sources alone\..*\n\n\[office\/laptops\.md\]\n# 🐋 laptops\n\nReport a lost /,
    );
    expect(printed).toMatch(/\n\nQuestion: what if my computer is stolen\?\n$/);
  });

  test.skipIf(noPython !== undefined)('is the same in Python', async () => {
    const { python, packages } = await pythonWithClient();
    expect(await runExample(python, ['rag_prompt.py', ...args], { PYTHONPATH: packages })).toBe(
      await prompt(),
    );
  });
});

test('ranking what another search found puts the right document first', async () => {
  const printed = await runExample(process.execPath, ['rerank.ts']);
  expect(printed).toMatch(/^\d+\.\d\d {2}whale \(was 3\)\n.*\n.*\n$/);
});

describe('the search in many languages', () => {
  const isBuilt = existsSync(path.join(manyLanguagesModel, 'manifest.json'));

  test.skipIf(!isBuilt)('finds the Chinese text by the German question, however often it runs', async () => {
    const printed = await runExample(process.execPath, ['languages.ts']);
    expect(printed).toMatch(/^\d+\.\d\d {2}Chinese: 蜜蜂采蜜[^\n]*\n[^\n]+\n[^\n]+\n$/);
    expect(await runExample(process.execPath, ['languages.ts'])).toBe(printed);
    const others = await runExample(process.execPath, ['languages.ts', 'Welches Tier ist am größten?']);
    expect(others).toMatch(/^\d+\.\d\d {2}Spanish: /);
  });

  test.skipIf(!isBuilt)('the picture of the site shows what the service answers', async () => {
    const { query, text, model, matches } = twoLanguages;
    const { client } = stage;
    const index = await makeIndex(client, { name: 'picture', model });
    await put(client, index.id, [{ doc_id: 'bees', text }]);
    const reply = await client.search(index.id, { query, return_components: true });
    const [found] = expectReply(reply, rankedWithComponents).results;
    // Tokens without weight have no range.
    const tokens = found?.components.per_query_token.filter((token) => token.text_range !== undefined) ?? [];
    expect(tokens.map(({ text_range: range }) => text.slice(range?.start, range?.end))).toEqual(
      matches.map((match) => match.found),
    );
    for (const [place, { similarity }] of tokens.entries())
      expect(similarity).toBeCloseTo(matches[place]?.similarity ?? NaN, 1);
  });

  test.skipIf(isBuilt)('says that the model is missing', async () => {
    await expect(runExample(process.execPath, ['languages.ts'])).rejects.toThrow('no such model');
  });
});

test('the import stores every document, and the search finds the right one', async () => {
  const printed = await runExample('bash', ['examples/import.sh'], {}, repositoryRoot);
  expect(printed).toMatch(/^done +8\nfailed +0$/m);
  expect(printed).toMatch(/^ +1 +[\d.]+ +laptops /m);
});

test('each program has fewer than 80 lines, the search in a folder 40 at most, and the prompt 25', () => {
  for (const program of ['rag.ts', 'rag.py'])
    expect(readFileSync(path.join(examples, program), 'utf8').split('\n').length).toBeLessThanOrEqual(41);
  for (const program of ['rag-prompt.ts', 'rag_prompt.py'])
    expect(readFileSync(path.join(examples, program), 'utf8').split('\n').length).toBeLessThanOrEqual(26);
  const files = globSync('examples/**/*.{ts,py,sh,yaml}', { cwd: repositoryRoot });
  expect(files.length).toBeGreaterThan(5);
  for (const file of files)
    expect(readFileSync(path.join(repositoryRoot, file), 'utf8').split('\n').length, file).toBeLessThan(80);
});
