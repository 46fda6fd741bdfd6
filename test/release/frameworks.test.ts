/** The packages for LangChain.js and LlamaIndex.TS: built, packed, unpacked, and used with those frameworks. */
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from '../../clients/tools/install.ts';
import { frameworkFolder, packFrameworks, packTypeScript, unpack } from '../../clients/tools/pack.ts';
import { repositoryRoot } from '../support/running/launch.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { guideExamples } from '../clients/guide.ts';

const stage = useSharedStage();
const names = ['langchain', 'llamaindex'];
const examples = guideExamples('ts', 'frameworks.md').map((code, number) => [`${number}.mts`, code] as const);
/** With the comment before it. */
const method = /( *\/\*\*(?:(?!\*\/)[^])*\*\/\n)? {2}(?:(?:static|override|async) )*\w+\([^;]*?\{$/gm;
let project = '';

beforeAll(async () => {
  project = await frameworkFolder('project-');
  const client = await packTypeScript(project);
  const tarballs = [client, ...(await packFrameworks(project, client))];
  for (const [at, name] of ['client', ...names].entries())
    await unpack(path.join(project, tarballs[at]!), path.join(project, 'node_modules/@maxsimd', name));
  cpSync(path.join(import.meta.dirname, 'frameworks'), project, { recursive: true });
  for (const [file, code] of examples) writeFileSync(path.join(project, file), code);
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

const start = (...args: string[]): Promise<string> =>
  run(process.execPath, args, project, {
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: stage.tenant.key,
    NODE_OPTIONS: '--disable-warning=ExperimentalWarning',
  });

test.each(names)('the package for %s retrieves, stores and reranks through the service', async (name) => {
  const printed = await start('--test', '--test-reporter=tap', `${name}.mts`);
  expect(printed).toMatch(/^# pass [5-9]$/m);
  expect(printed).toMatch(/^# skipped 0$/m);
});

test('the examples of the guide run', async () => {
  expect(examples.length).toBeGreaterThan(1);
  for (const [file] of examples)
    expect(await start(file), file).toMatch(/^Honey bees .*\nThe blue whale .*\n$/);
});

test('the examples and the tests fit the types of the packages', async () => {
  const options =
    '--noEmit --ignoreConfig --strict --module nodenext --target es2023 --skipLibCheck --types node';
  const compiler = path.join(repositoryRoot, 'node_modules/.bin/tsc');
  const files = globSync('*.mts', { cwd: project });
  expect(await run(compiler, [...options.split(' '), ...files], project)).toBe('');
});

test('a package depends on the client of its version, and on the framework as it is tested here', () => {
  const read = (folder: string) => JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const { dependencies } = read(path.join(repositoryRoot, 'clients/tools/frameworks'));
  const { version } = read(repositoryRoot);
  for (const name of names) {
    const core = `@${name}/core`;
    const peerDependencies = { [core]: `^${dependencies[core]}`, '@maxsimd/client': version };
    const installed = read(path.join(project, 'node_modules/@maxsimd', name));
    expect(installed).toMatchObject({ name: `@maxsimd/${name}`, version, peerDependencies });
    expect(installed).not.toHaveProperty('//');
  }
});

test.each(['typescript', ...names])('npm makes no package without code of clients/%s', async (name) => {
  const folder = path.join(repositoryRoot, 'clients', name);
  for (const from of [folder, repositoryRoot]) {
    const packing = run('npm', ['pack', '--ignore-scripts', '--pack-destination', project, folder], from, {
      // `npm test --silent` gives its own to every npm.
      npm_config_loglevel: 'error',
    });
    await expect(packing).rejects.toThrow(/must have name and version/);
  }
  // Who looks for the reason finds the command.
  expect(readFileSync(path.join(folder, 'package.json'), 'utf8')).toContain('npm run package');
});

test('every method that a user calls has an example', () => {
  for (const name of names) {
    const source = readFileSync(path.join(repositoryRoot, 'clients', name, 'src/index.ts'), 'utf8');
    const methods = [...source.matchAll(method)];
    const undocumented = methods.filter(([text]) => !/constructor\(|@example|@internal/.test(text));
    expect(undocumented.map(([text]) => text)).toEqual([]);
    expect(methods.length).toBeGreaterThan(5);
  }
});
