/// <reference lib="esnext.float16" />
/**
 * The tiny ColBERT of test/fixtures/colbert-tiny, computed again from the paper's rules (Khattab and Zaharia, SIGIR 2020,
 * section 3.2) and the formula in its generator. It shares no code with the encoder: it builds the padded
 * sequences as strings of tokens, and computes rows one by one in f64.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { tinyModel } from './models.ts';

const vocabulary = (
  JSON.parse(readFileSync(path.join(tinyModel, 'tokenizer.json'), 'utf8')) as {
    model: { vocab: Record<string, number> };
  }
).model.vocab;
const size = 16;
const queryLength = 12;
const documentLength = 24;
const punctuation = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';

/** Cuts ASCII text into word pieces: always the longest piece that fits. */
export function pieces(text: string): string[] {
  const words = text.toLowerCase().match(/[a-z0-9]+|[^a-z0-9\s]/g) ?? [];
  return words.flatMap((word) => {
    const found: string[] = [];
    for (let rest = word; rest !== '';) {
      const mark = found.length === 0 ? '' : '##';
      let end = rest.length;
      while (!(mark + rest.slice(0, end) in vocabulary)) end--;
      found.push(mark + rest.slice(0, end));
      rest = rest.slice(end);
    }
    return found;
  });
}

/** f64 rows of a query: `[CLS] [Q] q1 ... [SEP] [MASK] ...`. Every position gives a row. No position attends to MASK. */
export function queryRows(text: string): number[][] {
  const kept = pieces(text).slice(0, queryLength - 3);
  const real = ['[CLS]', '[unused0]', ...kept, '[SEP]'];
  const padding = Array.from({ length: queryLength - real.length }, () => '[MASK]');
  return rows([...real, ...padding], real.length);
}

/** f64 rows of one document window: `[CLS] [D] d1 ... [SEP]`, without the rows of punctuation. */
export function documentRows(window: readonly string[]): number[][] {
  const tokens = ['[CLS]', '[unused1]', ...window, '[SEP]'];
  if (tokens.length > documentLength) throw new Error('the window is too long');
  return rows(tokens, tokens.length).filter((_, i) => {
    const token = tokens[i]!;
    return token.length > 1 || !punctuation.includes(token);
  });
}

/** The values after rounding to int8 with a half-precision scale, as f64. */
export function quantised(row: readonly number[]): { values: number[]; scale: number } {
  const scale = Math.max(...row.map((value) => Math.abs(value))) / 127;
  return { values: row.map((value) => value / scale), scale: Math.f16round(scale) };
}

function rows(tokens: readonly string[], attended: number): number[][] {
  const embedded = tokens.map((token) => {
    const id = vocabulary[token];
    if (id === undefined) throw new Error(`${token} is no vocabulary entry`);
    return dimensions((h) => Math.sin(12.9898 * id + 78.233 * h + 1));
  });
  const context = dimensions(
    (h) => embedded.slice(0, attended).reduce((sum, e) => sum + e[h]!, 0) / attended,
  );
  return embedded.map((embedding) => {
    const projected = dimensions((d) =>
      embedding.reduce((sum, e, h) => sum + (e + 0.5 * context[h]!) * Math.sin(3.7 * h + 9.1 * d + 2), 0),
    );
    const norm = Math.hypot(...projected);
    return projected.map((value) => value / norm);
  });
}

function dimensions(value: (i: number) => number): number[] {
  return Array.from({ length: size }, (_, i) => value(i));
}
