/** The package's bin: the sources compiled to `dist/`, because Node strips no types under node_modules. */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { compiledEntry, run, runJson } from '../support/running/command-process.ts';

const root = path.resolve(import.meta.dirname, '../..');

beforeAll(() => {
  rmSync(path.join(root, 'dist'), { recursive: true, force: true });
  execFileSync(path.join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
});

describe('the compiled command line', () => {
  it('is what package.json names as the bin, and starts with a line that finds node', () => {
    const { bin } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      bin: { maxsimd: string };
    };
    expect(path.join(root, bin.maxsimd)).toBe(compiledEntry);
    expect(readFileSync(compiledEntry, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it('runs from any directory, imports no TypeScript, and makes a tenant', async () => {
    const cwd = await newDirectory();
    const environment = { MAXSIMD_DATA_DIR: path.join(cwd, 'data'), NODE_OPTIONS: '--no-strip-types' };
    const help = await run(['--help'], { entry: compiledEntry, cwd, environment });
    expect(help.stdout).toMatch(/^Usage: maxsimd/);
    expect(help.exitCode).toBe(0);
    const args = ['tenant', 'create', '--name', 'Acme'];
    const { exitCode, document } = await runJson(args, { entry: compiledEntry, cwd, environment });
    expect(exitCode).toBe(0);
    expect(document.api_key).toMatch(/^qkv_live_/);
  });
});
