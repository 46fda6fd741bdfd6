/**
 * `npm run bench -- tokenizer`: what a byte of text costs the tokenizer, for every part of Unicode, for runs of combining
 * marks and for texts meant to be slow. Each text has the size of the largest legal document and a quarter of it: time
 * that is linear in the bytes is the same for a byte of both.
 */
import path from 'node:path';
import { loadModel } from '../../src/encoder/model/served-model.ts';
import { describeEnvironment, type Environment, root } from '../lib/environment.ts';
import { integer } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { median } from '../lib/statistics.ts';
import { columns } from '../lib/table.ts';
import { packageTexts } from '../lib/texts.ts';

const settings = {
  kib: integer(100, 'size of the texts'),
  processorMs: integer(20, 'processor time that a measurement takes at least'),
  rowLength: integer(
    128,
    "code points of a row of the table: Unicode's blocks are made of rows of 128, or lie within one",
  ),
};

export const tokenizer = benchmark({
  name: 'tokenizer',
  summary: 'what a byte of every kind of text costs the tokenizer',
  settings,
  run,
  render,
});

interface TextCost {
  readonly text: string;
  readonly ns_per_byte: number;
  /** Time of a byte over that of a byte of a quarter of the text. */
  readonly growth: number;
}

interface TokenizerReport {
  readonly environment: Environment;
  readonly settings: Readonly<Record<'bytes' | 'processorMs' | 'rowLength', number>>;
  readonly ordinary: readonly TextCost[];
  readonly hostile: readonly TextCost[];
  /** Texts of the characters of a row, one after the other. */
  readonly rows: readonly TextCost[];
  /** The marks of a row, and after them marks that canonical order puts before them. */
  readonly marks: readonly TextCost[];
}

const model = path.join(root, 'models/minilm-l6-maxsim/1');
/** In canonical order this mark comes before almost every other. */
const lowestMark = '\u0334';

const ordinary: Readonly<Record<string, string>> = {
  Russian: 'Съешь ещё этих мягких французских булок, да выпей же чаю. ',
  Greek: 'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ',
  Arabic: 'نص حكيم له سر قاطع وذو شأن عظيم. ',
  Hindi: 'ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण। ',
  Thai: 'เป็นมนุษย์สุดประเสริฐเลิศคุณค่า',
  Vietnamese: 'Tiếng Việt có nhiều dấu thanh và dấu mũ. ',
  Japanese: 'いろはにほへと散りぬるを我が世誰ぞ常ならむ。',
  Korean: '키스의 고유조건은 입술끼리 만나야 하고. ',
};

const hostile: Readonly<Record<string, string>> = {
  'one word': 'a',
  spaces: ' ',
  'no-break spaces': '\u00a0',
  'line feeds': '\n',
  'control characters': '\0',
  punctuation: '!',
  '[MASK]': '[MASK]',
  'Hangul jamo': '\u1112\u1161\u11ab',
  'joined emoji': '👩\u200d👧\u200d👦\u200d',
  'bidirectional marks': '\u200f\u202a',
  'an accent on every letter': 'e\u0301',
  'marks between control characters': '\u0315\u200b\u0300\u200b',
};

async function run({
  kib,
  processorMs,
  rowLength,
  command,
}: OptionsOf<typeof settings>): Promise<TokenizerReport> {
  const largest = kib * 1024;
  const { tokenizer: measured } = await loadModel(model);
  const rows = rowsOfUnicode(rowLength);
  const english = packageTexts(400).join(' ');
  const cost = (text: string, ofBytes: (bytes: number) => string): TextCost => {
    const [short, long] = [largest / 4, largest].map((size) => {
      const sample = ofBytes(size);
      const ms = processorTime(() => measured.encode(sample), processorMs);
      return (ms * 1e6) / Buffer.byteLength(sample);
    }) as [number, number];
    return { text, ns_per_byte: long, growth: long / short };
  };
  const costs = (texts: Readonly<Record<string, string>>): TextCost[] =>
    Object.entries(texts).map(([text, part]) => cost(text, (bytes) => filled(part, bytes)));
  return {
    environment: describeEnvironment(command, 'none', []),
    settings: { bytes: largest, processorMs, rowLength },
    ordinary: costs({ English: english, ...ordinary }),
    hostile: costs(hostile),
    rows: costs(Object.fromEntries(rows.map(({ name, text }) => [name, text]))),
    marks: rows
      .filter(({ marks }) => marks !== '')
      .map(({ name, marks }) =>
        cost(name, (bytes) => filled(marks, bytes / 2) + filled(lowestMark, bytes / 2)),
      ),
  };
}

function render({ ordinary: usual, hostile: meant, rows, marks }: TokenizerReport): string {
  const widths = { first: 38, others: 10 };
  const line = ({ text, ns_per_byte: cost, growth }: TextCost): string =>
    `${columns([`  ${text}`, cost.toFixed(1), growth.toFixed(2)], widths)}\n`;
  const table = (title: string, costs: readonly TextCost[]): string =>
    `${columns([title, 'ns a byte', 'growth'], widths)}\n${costs.map(line).join('')}`;
  const slowest = (costs: readonly TextCost[]): readonly TextCost[] =>
    costs.toSorted((a, b) => b.ns_per_byte - a.ns_per_byte).slice(0, 8);
  const middle = (costs: readonly TextCost[]): string =>
    median(costs.map(({ ns_per_byte: cost }) => cost)).toFixed(1);
  return [
    table('ordinary text', usual),
    table('text meant to be slow', meant),
    table(`the slowest of ${rows.length} rows of Unicode; median ${middle(rows)}`, slowest(rows)),
    table(`the slowest of ${marks.length} runs of marks; median ${middle(marks)}`, slowest(marks)),
  ].join('\n');
}

/** Processor time of one run, whatever else the machine does: of so many runs that the clock's ticks do not matter. */
function processorTime(work: () => unknown, leastMs: number): number {
  work();
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs++) {
    work();
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= leastMs * 1000) return (user + system) / 1000 / runs;
  }
}

/** Rows that hold an assigned character, with its characters and those of them that are marks. */
function rowsOfUnicode(length: number): readonly { name: string; text: string; marks: string }[] {
  return Array.from({ length: 0x110000 / length }, (_, row) => {
    const first = row * length;
    const codes = Array.from({ length }, (_unused, i) => first + i);
    const characters = codes
      .map((code) => String.fromCodePoint(code))
      .filter((character) => /[^\p{Cn}\p{Cs}]/u.test(character));
    const marks = characters.filter((character) => /\p{M}/u.test(character));
    const [from, to] = [first, first + length - 1].map((code) => `U+${code.toString(16).padStart(4, '0')}`);
    return { name: `${from} to ${to}`, text: characters.join(''), marks: marks.join('') };
  }).filter(({ text }) => text !== '');
}

/** The text again and again up to so many bytes of UTF-8. */
function filled(text: string, bytes: number): string {
  const partBytes = Buffer.byteLength(text);
  const whole = text.repeat(Math.floor(bytes / partBytes));
  const rest = Buffer.from(text).subarray(0, bytes % partBytes);
  return whole + rest.toString().replaceAll('\u{fffd}', '');
}
