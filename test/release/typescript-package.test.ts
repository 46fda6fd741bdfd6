/** The TypeScript client as a package: built, packed, unpacked, and used by the examples of the guide. */
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { run } from '../../clients/tools/install.ts';
import { version } from '../../clients/typescript/src/version.ts';
import { makeScratch, repositoryRoot } from '../support/running/launch.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { guideExamples } from '../clients/guide.ts';
import { typeScriptProject } from '../support/typescript-project.ts';

const stage = useSharedStage();
const scratch = await makeScratch();
const project = path.join(scratch.root, 'project');
const installed = path.join(project, 'node_modules/@maxsimd/client');
const tsc = path.join(repositoryRoot, 'node_modules/.bin/tsc');

beforeAll(async () => {
  await typeScriptProject(scratch.root);
});
afterAll(() => scratch.remove());

const environment = (): Record<string, string> => ({
  MAXSIMD_URL: stage.server.url,
  MAXSIMD_API_KEY: stage.tenant.key,
});

function example(number: number): string {
  const file = path.join(project, `example-${number}.mts`);
  writeFileSync(file, guideExamples('ts')[number] ?? '');
  return file;
}

test('holds what it needs and depends on undici alone, as it is tested here', async () => {
  const read = (folder: string): unknown =>
    JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const manifest = z
    .object({ version: z.string(), dependencies: z.record(z.string(), z.string()) })
    .parse(read(installed));
  const undici = z.object({ version: z.string() }).parse(read(path.join(project, 'node_modules/undici')));
  expect(manifest).toMatchObject({ version, dependencies: { undici: `^${undici.version}` } });
  expect(Object.keys(manifest.dependencies)).toEqual(['undici']);
  expect(readdirSync(installed).toSorted()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json']);
  expect(readFileSync(path.join(installed, 'LICENSE'), 'utf8')).toBe(
    readFileSync(path.join(repositoryRoot, 'LICENSE'), 'utf8'),
  );
});

test('the example of the guide finds the bee first', async () => {
  expect(await run(process.execPath, [example(0)], project, environment())).toMatch(
    /^\d\.\d\d Honey bees .*\n\d\.\d\d The blue whale/,
  );
});

test('the route of the guide answers a page without giving it the key', async () => {
  const child = spawn(process.execPath, [example(1)], {
    cwd: project,
    env: { ...process.env, ...environment(), PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const port = await new Promise<string>((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        const [, number] = /ready on (\d+)/.exec(text) ?? [];
        if (number !== undefined) resolve(number);
      });
      child.once('close', (code) => reject(new Error(`the route ended with ${code}`)));
    });
    const answer = await fetch(`http://127.0.0.1:${port}/?q=largest+animal`);
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject([{ doc_id: 'whale' }, { doc_id: 'bee' }]);
    expect(text).not.toContain('qkv_live_');
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(400);
  } finally {
    child.kill();
  }
});

test('the errors of the guide come with code and issues', async () => {
  const printed = await run(process.execPath, [example(2)], project, environment());
  expect(printed).toBe('422 validation_error true\nquery too_small\ndocuments too_small\n');
});

test('the examples fit the types of the package', async () => {
  const files = guideExamples('ts').map((_code, number) => example(number));
  const types = ['--types', 'node', '--typeRoots', path.join(repositoryRoot, 'node_modules/@types')];
  const options = [
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--skipLibCheck',
    'false',
  ];
  expect(await run(tsc, [...options, ...types, ...files], project)).toBe('');
});

test('it refuses to run in a browser, and works in Node where a test environment adds a document', async () => {
  const code = `globalThis.document = {}; const { Maxsimd } = await import('@maxsimd/client');
    console.log((await new Maxsimd().listIndexes()).length);
    // Bundlers may bring one without versions.
    for (const process of [{ versions: {} }, undefined]) {
      Object.defineProperty(globalThis, 'process', { value: process, configurable: true });
      try { new Maxsimd({ url: 'http://x', apiKey: 'y' }) } catch (error) { console.log(error.message) }
    }`;
  writeFileSync(path.join(project, 'browser.mjs'), code);
  const refusal = 'an API key must not reach a browser: call the service from your backend';
  const printed = await run(process.execPath, ['browser.mjs'], project, environment());
  expect(printed).toMatch(new RegExp(`^\\d+\n${refusal}\n${refusal}\n$`));
});
