/**
 * Texts of the largest legal size from every part of Unicode. None blocks the encoder's event loop, and the time of each is
 * proportional to its bytes. Unicode's blocks consist of rows of 128 code points, or lie within one.
 */
import { describe, expect, it } from 'vitest';

import { loadModel } from '../../../../src/encoder/model/served-model.ts';
import { textBytesMax } from '../../../../src/http/limits.ts';
import { rounds } from '../../../rounds.ts';
import { defaultModel } from '../../../support/encoder/models.ts';
import { announceRandom } from '../../../support/running/random.ts';
import { turnsOf } from '../../../support/turns.ts';

/** Turns end after 2 ms of work. The rest is room for the garbage collector and a slow machine. */
const holdMsMax = 50;
/** The most that a byte of a whole text may cost, compared with a byte of a quarter of it. */
const growthMax = 3;
/** Shorter times are too inexact to be compared. */
const comparedMs = 30;

const rowLength = 128;
/** In canonical order this mark comes before almost every other. */
const lowestMark = '\u0334';
const { tokenizer } = await loadModel(defaultModel);

interface Row {
  readonly name: string;
  readonly characters: readonly string[];
}

const rows: readonly Row[] = Array.from({ length: 0x11_0000 / rowLength }, (_, row) => ({
  name: `U+${(row * rowLength).toString(16)}`,
  characters: Array.from({ length: rowLength }, (_unused, n) => row * rowLength + n)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((character) => !/\p{Cn}/u.test(character)),
})).filter(({ characters }) => characters.length > 0);

/** Repeats the parts up to so many bytes. */
function filled(parts: readonly string[], bytes: number): string {
  const part = parts.join('');
  return part.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(part))));
}

/** Four texts of a row: as it is, as one word, with its marks out of order, and with each character on a letter. */
function textsOf({ characters }: Row, bytes: number): Readonly<Record<string, string>> {
  // One that canonical order moves behind the lowest mark; others end a run.
  const marks = characters.filter((character) => {
    const unordered = `a${character}${lowestMark}`;
    return /\p{M}/u.test(character) && unordered.normalize('NFD') !== unordered;
  });
  const letters = characters.filter((character) => /\p{L}/u.test(character));
  return {
    row: filled(characters, bytes),
    ...(letters.length === 0 ? {} : { 'one word': filled([letters[0]!], bytes) }),
    ...(marks.length === 0 ? {} : { marks: filled(marks, bytes / 2) + filled([lowestMark], bytes / 2) }),
    accents: filled(
      characters.map((character) => `e${character}`),
      bytes,
    ),
  };
}

/** The least of three runs. */
async function costOf(text: string): Promise<{ readonly longestMs: number; readonly processorMs: number }> {
  const never = new AbortController().signal;
  const runs = [];
  for (let run = 0; run < 3; run += 1) runs.push(await turnsOf(() => tokenizer.encodeInSlices(text, never)));
  return {
    longestMs: Math.min(...runs.map(({ longestMs }) => longestMs)),
    processorMs: Math.min(...runs.map(({ processorMs }) => processorMs)),
  };
}

describe('a text of 100 KiB', () => {
  const random = announceRandom('rows of Unicode');
  // The first rows hold Latin letters and the marks that they take.
  const chosen = rounds({ short: 0, nightly: 1 })
    ? rows
    : [...rows.slice(0, 8), ...Array.from({ length: 12 }, () => random.pick(rows))];

  it.each(chosen.map((row) => [row.name, row] as const))('of the row %s', async (_name, row) => {
    const quarters = textsOf(row, textBytesMax / 4);
    for (const [kind, text] of Object.entries(textsOf(row, textBytesMax))) {
      const whole = await costOf(text);
      expect(whole.longestMs, kind).toBeLessThan(holdMsMax);
      if (whole.processorMs < comparedMs) continue;
      const quarter = await costOf(quarters[kind]!);
      expect(whole.processorMs / quarter.processorMs / 4, kind).toBeLessThan(growthMax);
    }
  });
});
