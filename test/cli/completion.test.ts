/** The scripts of `maxsimd completion`, asked by the shells they are for. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/commands/command-process.ts';
import { installMissingTools } from '../../deploy/local/debian-packages.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

let directory: string;
let whyNot: string | undefined;

beforeAll(async () => {
  directory = await newDirectory();
  for (const shell of shells) {
    const { stdout } = await run(['completion', shell]);
    writeFileSync(path.join(directory, shell), stdout);
  }
  writeFileSync(path.join(directory, 'corpus of mine.jsonl'), '');
  whyNot = installMissingTools({ zsh: 'zsh', fish: 'fish' });
});

/** The words that the shell offers after `words`, the last of which is being typed. */
function offers(shell: Shell, words: readonly string[]): readonly string[] {
  const list = words.map((word) => `'${word}'`).join(' ');
  const scripts: Readonly<Record<Shell, readonly string[]>> = {
    bash: [
      '-c',
      `source ./bash; COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _maxsimd; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ],
    // Stands for the completion system, which wants a terminal.
    zsh: [
      '-fc',
      `compdef() {}; _describe() { print -rl -- "\${(@)offers%%:*}" }; _files() { print -rl -- * }
       source ./zsh; words=(${list}); CURRENT=${words.length}; _maxsimd`,
    ],
    fish: ['--no-config', '-c', `source ./fish; complete -C '${words.join(' ')}'`],
  };
  return execFileSync(shell, scripts[shell], { cwd: directory, encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.replace(/\t.*/, ''));
}

describe.each(shells)('completion in %s', (shell) => {
  it('offers commands, then their commands, then their options', (context) => {
    context.skip(shell !== 'bash' && whyNot !== undefined, whyNot);
    const top = offers(shell, ['maxsimd', '']);
    for (const word of ['serve', 'tenant', 'import', 'usage']) expect(top).toContain(word);
    const tenant = offers(shell, ['maxsimd', 'tenant', '']);
    expect(tenant).toContain('create');
    expect(tenant).not.toContain('serve');
    const options = offers(shell, ['maxsimd', 'tenant', 'create', '--name', 'create', '--']);
    expect(options).toContain('--documents');
    expect(options).not.toContain('--yes');
    expect(offers(shell, ['maxsimd', 'completion', ''])).toEqual(expect.arrayContaining([...shells]));
  });

  it('offers files where a command takes one', (context) => {
    context.skip(shell !== 'bash' && whyNot !== undefined, whyNot);
    expect(offers(shell, ['maxsimd', 'import', 'cor']).join()).toMatch(/corpus.*of.*mine\.jsonl/);
  });
});
