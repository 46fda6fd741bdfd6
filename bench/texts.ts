/** Text that the benchmarks encode and store. */
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { root } from './environment.ts';

/** Paragraphs of the documentation that the installed packages and this project bring: real text on every machine. */
export function packageTexts(count: number): readonly string[] {
  const files = [path.join(root, 'README.md'), ...readmesUnder(path.join(root, 'node_modules'))];
  const texts: string[] = [];
  for (const file of files) {
    const words = readFileSync(file, 'utf8')
      .replaceAll(/[#*_`|<>[\]()-]+/g, ' ')
      .split(/\s+/)
      .filter((word) => word !== '');
    // Lengths vary as those of real documents do: 40 to 440 words.
    for (let from = 0; from + 40 < words.length && texts.length < count;) {
      const length = 40 + ((texts.length * 7919) % 401);
      texts.push(words.slice(from, from + length).join(' '));
      from += length;
    }
    if (texts.length >= count) break;
  }
  return texts;
}

function readmesUnder(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || entry.name.startsWith('.')) return [];
    const folder = path.join(directory, entry.name);
    if (entry.name.startsWith('@')) return readmesUnder(folder);
    return readdirSync(folder)
      .filter((name) => /^readme\.md$/i.test(name))
      .map((name) => path.join(folder, name));
  });
}
