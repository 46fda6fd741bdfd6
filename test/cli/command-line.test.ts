/** The words of the command line: help, usage errors, exit codes. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { run, runJson } from '../support/commands/command-process.ts';

const root = path.resolve(import.meta.dirname, '../..');
const secret = 'qkv_live_secret\nvalue';

describe('the command line', () => {
  it('explains itself and exits with 0', async () => {
    for (const args of [['--help'], ['tenant', '--help'], ['help', 'import']]) {
      const { exitCode, stdout, stderr } = await run(args);
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(/^Usage: maxsimd/);
      expect(stderr).toBe('');
    }
  });

  it.each([[[]], [['tenant']], [['key']], [['index']], [['models']]])(
    'explains itself where a word is missing: %j, with exit code 0 and nothing but help',
    async (args) => {
      const { exitCode, stdout, stderr } = await run(args);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toBe((await run([...args, '--help'])).stdout);
    },
  );

  it('is coloured on a terminal only, and not with NO_COLOR', async () => {
    const escape = '\u001b[';
    expect((await run(['nonsense'])).stderr).not.toContain(escape);
    expect((await run(['nonsense'], { environment: { FORCE_COLOR: '1' } })).stderr).toContain(escape);
    // FORCE_COLOR takes the place of a terminal, for NO_COLOR there must be one.
    const onTerminal = (environment: Readonly<Record<string, string>>): string => {
      const command = `'${process.execPath}' src/cli/main.ts tenant`;
      const env = { PATH: process.env['PATH'], TERM: 'xterm-256color', ...environment };
      return execFileSync('script', ['-qec', command, '/dev/null'], { env, encoding: 'utf8', cwd: root });
    };
    expect(onTerminal({})).toContain(`${escape}1mUsage:`);
    expect(onTerminal({ NO_COLOR: '1' })).toContain('Usage: maxsimd tenant');
    expect(onTerminal({ NO_COLOR: '1' })).not.toContain(escape);
  });

  it('tells its version', async () => {
    const { exitCode, stdout } = await run(['--version']);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
  });

  it('knows every command of the onboarding', async () => {
    const { stdout } = await run(['--help']);
    for (const command of [
      'serve',
      'tenant',
      'key',
      'index',
      'models',
      'import',
      'search',
      'eval',
      'usage',
      'completion',
    ]) {
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
    }
    const tenant = await run(['tenant', '--help']);
    for (const command of ['create', 'list', 'suspend', 'resume', 'limits', 'delete']) {
      expect(tenant.stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
    }
  });

  it.each([
    [['nonsense'], /unknown command/],
    [['tenant', 'create'], /required option '--name <name>' not specified/],
    [['tenant', 'create', '--name', ' '], /--name must not be empty, got " "/],
    [
      ['tenant', 'create', '--name', 'x', '--documents', '-1'],
      /--documents must be a whole number, got "-1"/,
    ],
    [
      ['tenant', 'create', '--name', 'x', '--requests-per-minute', '0'],
      /--requests-per-minute must be at least 1, got "0"/,
    ],
    [
      ['tenant', 'create', '--name', 'x', '--input-tokens', '9223372036854775808'],
      /--input-tokens must be at most 2\^63 - 1, got/,
    ],
    [['tenant', 'suspend'], /missing required argument 'tenant'/],
    [['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
    [['import', 'a', 'b', '--index', 'x'], /too many arguments/],
    [['search', 'x', '--index', 'i'], /an API key is needed/],
    [['search', 'x', '--index', 'i', '--key', 'k', '--url', 'localhost'], /--url must be an http/],
    [['search', 'x', '--index', 'i', '--key', 'k', '--url', 'http://user:pw@host'], /takes no credentials/],
    [['search', 'x', '--index', 'i', '--key', 'k', '--filter', '[1]'], /--filter must be a JSON object/],
    [['search', 'x', '--index', 'i', '--key', 'k', '--filter', '{'], /--filter is not valid JSON/],
    [['search', 'x', '--index', 'i', '--key', 'k', '--where', '[]'], /--where must be a JSON object/],
    [
      ['search', 'x', '--index', 'i', '--key', 'k', '--no-match', '--match-weight', '1'],
      /--no-match takes no/,
    ],
    [
      ['search', 'x', '--index', 'i', '--key', 'k', '--where', '{"a":{"lt":1,"lt":2}}'],
      /--where: a\.lt occurs twice in one object/,
    ],
    [['search', 'x', '--index', 'i', '--key', secret], /holds characters that no key has/],
    [['key', 'revoke', '..', '--admin-url', 'http://127.0.0.1:9', '--admin-key', 'k'], /no id is "\.\."/],
  ] as const)('refuses %j with exit code 2 and one line', async (args, message) => {
    const environment = { MAXSIMD_DATA_DIR: await newDirectory() };
    const plain = await run(args, { environment });
    expect(plain.exitCode).toBe(2);
    expect(plain.stdout).toBe('');
    expect(plain.stderr).toMatch(message);
    expect(plain.stderr).toMatch(/^maxsimd: [^\n]*\n$/);
    expect(plain.stderr).not.toContain('secret');
    const json = await runJson(args, { environment });
    expect(json.exitCode).toBe(2);
    expect(json.document.error).toEqual({ code: 'usage_error', message: expect.stringMatching(message) });
  });

  it('refuses a wrong configuration with exit code 2', async () => {
    const environment = { MAXSIMD_DATA_DRI: '/nowhere' };
    const { exitCode, document } = await runJson(['tenant', 'list'], { environment });
    expect(exitCode).toBe(2);
    expect(document.error.code).toBe('configuration_error');
    expect(document.error.message).toContain(
      'MAXSIMD_DATA_DRI is not a variable of maxsimd (did you mean MAXSIMD_DATA_DIR?)',
    );
  });

  it('that cannot reach the service says so', async () => {
    const file = path.join(await newDirectory(), 'one.jsonl');
    writeFileSync(file, '{"id":"a","text":"b"}');
    // Port 9 (discard) is closed on any machine that runs tests.
    const args = ['import', file, '--index', 'x', '--key', 'k', '--url', 'http://127.0.0.1:9'];
    const { exitCode, document } = await runJson([...args, '--retry-for', '0.1']);
    expect(exitCode).toBe(1);
    expect(document.error).toMatchObject({
      code: 'connection_failed',
      message: expect.stringMatching(/cannot reach/),
    });
  });
});
