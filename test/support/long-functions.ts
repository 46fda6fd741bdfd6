/** Finds functions of more than 80 lines. Each is `file name`. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { newDirectory } from './machine/temporary-directory.ts';

const functionLinesMax = 80;
const oxlintSchema = z.object({
  diagnostics: z.array(z.object({ filename: z.string(), message: z.string() })),
});

/** Functions of TypeScript, as oxlint counts them: from the signature on, with comments and empty lines. */
export async function longFunctionsOfTypeScript(root: string): Promise<readonly string[]> {
  const config = path.join(await newDirectory(), 'oxlint.json');
  writeFileSync(
    config,
    JSON.stringify({
      categories: { correctness: 'off' },
      ignorePatterns: ['node_modules', 'build', 'dist'],
      rules: { 'max-lines-per-function': ['error', { max: functionLinesMax }] },
    }),
  );
  const folders = ['src', 'bench', 'clients', 'deploy', 'docs', 'examples', 'packages'];
  const { stdout } = spawnSync('node_modules/.bin/oxlint', ['-c', config, '--format', 'json', ...folders], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const { diagnostics } = oxlintSchema.parse(JSON.parse(stdout));
  const inSources = diagnostics.filter(({ filename }) => !filename.endsWith('.test.ts'));
  return inSources.map(({ filename, message }) => {
    const [, name = 'without a name'] = /function `(\w+)`/.exec(message) ?? [];
    return `${filename} ${name}`;
  });
}

/**
 * Functions of C++. A function begins at column 0, or at 2 in a class. It ends at the brace below its first letter. The lines of a
 * macro count, but neither begin nor end one.
 */
export function longFunctionsOfCpp(texts: ReadonlyMap<string, string>): readonly string[] {
  const found: string[] = [];
  for (const [file, content] of [...texts].filter(([name]) => name.startsWith('native/'))) {
    for (const indent of ['', '  ']) {
      let start = { line: 0, words: '' };
      let inMacro = false;
      for (const [line, words] of content.split('\n').entries()) {
        const isMacro: boolean = inMacro || words.startsWith('#');
        inMacro = isMacro && words.endsWith('\\');
        if (isMacro) continue;
        if (words.startsWith(`${indent}}`)) {
          const [, name] = /(\w+)\(/.exec(start.words) ?? [];
          if (name !== undefined && line - start.line >= functionLinesMax) found.push(`${file} ${name}`);
          start = { line, words: '' };
        } else if (new RegExp(`^${indent}\\w`).test(words)) {
          start = { line, words: /^ *(if|for|while|switch|do|else|case)\b/.test(words) ? '' : words };
        }
      }
    }
  }
  return found;
}
