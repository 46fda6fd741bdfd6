/** The examples of docs/guide/clients.md. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { repositoryRoot } from '../support/running/launch.ts';

/** Code blocks of a language, in order. */
export function guideExamples(language: string): readonly string[] {
  const text = readFileSync(path.join(repositoryRoot, 'docs/guide/clients.md'), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );
}
