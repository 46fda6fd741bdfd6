/** The examples of docs/guide. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { repositoryRoot } from '../support/running/launch.ts';

/** Code blocks of a language on a page, in order. */
export function guideExamples(language: string, page = 'clients.md'): readonly string[] {
  const text = readFileSync(path.join(repositoryRoot, 'docs/guide', page), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );
}
