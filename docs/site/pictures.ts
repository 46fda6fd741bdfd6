/** The pictures of the site. Their figures are those of `docs/benchmarks.md`. If one is not found, the build ends. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { alignment, languages } from './alignment.ts';
import { bars, figure, latencyOverRecall, type Bar, type Picture } from './svg.ts';

const benchmarks = 'docs/benchmarks.md';
const source = readFileSync(path.resolve(import.meta.dirname, '../..', benchmarks), 'utf8');
const timeColumn = 'p50 / p99 ms';

type Row = ReadonlyMap<string, string>;

/** Rows of the table under a heading that has these columns. The second column of a name is `NAME (2)`. */
export function tableOf(text: string, heading: string, columns: readonly string[]): readonly Row[] {
  const section = text.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${benchmarks} has no heading "${heading}"`);
  for (const block of section.split('\n\n').filter((part) => part.startsWith('|'))) {
    const [names = [], , ...rows] = block.trim().split('\n').map(cellsOf);
    const keys = names.map((name, place) => {
      const before = names.slice(0, place).filter((other) => other === name).length;
      return before === 0 ? name : `${name} (${before + 1})`;
    });
    if (columns.every((column) => keys.includes(column)))
      return rows.map((cells) => new Map(cells.map((cell, place) => [keys[place] ?? '', cell])));
  }
  throw new Error(`${benchmarks} has no table with the columns "${columns.join('", "')}" under "${heading}"`);
}

function cellsOf(line: string): readonly string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll(/[*`]/g, ''));
}

/** The row whose column has these words. */
export function rowOf(rows: readonly Row[], column: string, words: string): Row {
  const found = rows.find((row) => row.get(column)?.includes(words));
  if (found === undefined) throw new Error(`${benchmarks} has no row "${words}" in column "${column}"`);
  return found;
}

/** The numbers of a cell such as `.952, .923` or `18,102 tokens`, of which there must be so many. */
export function numbersOf(row: Row, column: string, atLeast: number): readonly number[] {
  const cell = row.get(column) ?? '';
  const numbers = [...cell.matchAll(/\d{1,3}(?:,\d{3})+|\d*\.?\d+/g)].map(([digits]) =>
    Number(digits.replaceAll(',', '')),
  );
  if (numbers.length >= atLeast) return numbers;
  throw new Error(`${benchmarks}: "${cell}" in column "${column}" has fewer than ${atLeast} numbers`);
}

interface PeerPoint {
  readonly setting: string;
  readonly recall: number;
  readonly ms: number;
}

/** The settings of each engine, which stand below its first one. Recall is the better of both truths. */
function peerPoints(): ReadonlyMap<string, readonly PeerPoint[]> {
  const [engine, recall] = ['Engine, settings', 'recall@10: ours, unit'];
  const points = new Map<string, PeerPoint[]>();
  let own: PeerPoint[] = [];
  for (const row of tableOf(source, 'Other engines', [engine, recall, timeColumn])) {
    const cell = row.get(engine) ?? '';
    const [, name] = /^(maxsimd, pooled rows(?=,)|maxsimd(?=,)|[\w-]+(?= \d+\.\d+\.\d+,))/.exec(cell) ?? [];
    if (name !== undefined) points.set(name, (own = []));
    const [ms = 0] = numbersOf(row, timeColumn, 2);
    own.push({ setting: /\d+$/.exec(cell)?.[0] ?? '', recall: Math.max(...numbersOf(row, recall, 1)), ms });
  }
  return points;
}

/** Words at the right edge stand before their point. */
function sideOf(recall: number): 'left' | 'right' {
  return recall > 0.995 ? 'left' : 'right';
}

/** Latency over recall, beside other engines on the same rows. */
function peers(): Picture {
  const engines = peerPoints();
  const own = engines.get('maxsimd');
  if (own === undefined) throw new Error(`${benchmarks} has no row of maxsimd under "Other engines"`);
  const others = [...engines].filter(([name]) => !name.startsWith('maxsimd'));
  const bestOf = (points: readonly PeerPoint[]): PeerPoint =>
    points.reduce((best, point) => (point.recall > best.recall ? point : best));
  const placed = others.map(([name, points]) => {
    const best = bestOf(points);
    return {
      look: 'peer' as const,
      points: points.map((point) => ({
        ...point,
        name: point === best ? name : '',
        side: sideOf(point.recall),
      })),
    };
  });
  return {
    title: 'Latency over recall, beside other engines',
    caption:
      'Lower is faster, further right misses less. 2,000 chunks of the same rows, one thread. The numbers are candidate_k of maxsimd.',
    description: [['maxsimd', own] as const, ...others]
      .map(([name, points]) => `${name} finds ${bestOf(points).recall} in ${bestOf(points).ms} ms`)
      .join('; '),
    draw: (width) =>
      latencyOverRecall(
        [
          ...placed,
          {
            look: 'own',
            joined: true,
            points: own.map(({ setting, ...point }) => ({
              ...point,
              name: setting,
              side: sideOf(point.recall),
            })),
          },
        ],
        width,
      ),
  };
}

/** Recall and time over `candidate_k`, for chunks of three lengths. */
function candidates(): Picture {
  const columns = [
    { length: 'long', look: 'own', time: timeColumn },
    { length: 'middle', look: 'peer', time: `${timeColumn} (2)` },
    { length: 'short', look: 'other', time: `${timeColumn} (3)` },
  ] as const;
  const recallOf = (length: string): string => `${length}: recall@10, @100`;
  const needed = columns.flatMap(({ length, time }) => [recallOf(length), time]);
  const rows = tableOf(source, 'What each candidate_k costs', ['candidate_k', ...needed]);
  const series = columns.map(({ length, look, time }) => {
    const measured = rows.filter((row) => row.get(time) !== '');
    const points = measured.map((row, place) => {
      const [recall = 0] = numbersOf(row, recallOf(length), 2);
      const [ms = 0] = numbersOf(row, time, 2);
      const isLast = place === measured.length - 1;
      const name = isLast ? length : look === 'own' ? row.get('candidate_k') : '';
      return { recall, ms, name: name ?? '', side: isLast ? ('right' as const) : ('left' as const) };
    });
    return { look, points, joined: true, length };
  });
  return {
    title: 'Latency over recall, by candidate_k',
    caption:
      'One line for each length of chunks. The numbers are candidate_k; the last points are those of 500.',
    description: series
      .map(({ length, points }) => {
        const steps = points.map(({ recall, ms }) => `${recall} in ${ms} ms`);
        return `${length} chunks: ${steps.join(', ')}`;
      })
      .join('; '),
    draw: (width) => latencyOverRecall(series, width),
  };
}

/** How many times as many tokens a second as another program on the same machine. */
function encoders(): Picture {
  const cpu = tableOf(source, 'Encoder', ['Goal', 'Figure']);
  const gpu = tableOf(source, 'GPU', ['Goal', 'Figure']);
  const beside = [
    { rows: gpu, goal: 'sentence-transformers', name: 'sentence-transformers, f16, one H200' },
    { rows: cpu, goal: 'on the usual f32 export', name: 'Transformers.js, f32 export, two cores' },
    { rows: cpu, goal: 'on its int8 export', name: 'Transformers.js, int8 export, two cores' },
    { rows: cpu, goal: 'on our own graph', name: 'Transformers.js, our graph, two cores' },
  ];
  const ratios = beside.map(({ rows, goal, name }): Bar => {
    const [ratio = 0] = numbersOf(rowOf(rows, 'Goal', goal), 'Figure', 1);
    return { name, value: `${ratio.toFixed(2)}×`, parts: [{ size: ratio, look: 'own' }] };
  });
  return barPicture(
    'Encoder speed, beside other programs',
    'Tokens a second as a multiple of the other program’s. The gap in a bar stands at 1, where both are equally fast.',
    ratios,
    1,
  );
}

const chunks = 1_000_000;
const tokensOfChunk = 61;

/** Disk and memory of a million chunks, by model. */
function space(): Picture {
  const columns = ['Segments', 'Codes', 'Codebook'];
  const rows = tableOf(source, 'Two models', ['Bytes of a token vector', ...columns]).map((row): Bar => {
    const [segments = 0, codes = 0, codebook = 0] = columns.map((column) => {
      const [bytes = 0] = numbersOf(row, column, 1);
      return (bytes * chunks * tokensOfChunk) / 1e9;
    });
    const held = codes + codebook;
    return {
      name: row.get('Bytes of a token vector') ?? '',
      value: `${(segments + held).toFixed(1)} GB, ${held.toFixed(1)} in memory`,
      parts: [
        { size: held, look: 'own' },
        { size: segments, look: 'other' },
      ],
    };
  });
  return barPicture(
    'Disk and memory of a million chunks',
    `Chunks of ${tokensOfChunk} token vectors. The coloured part is also held in memory, for fast searches.`,
    rows,
  );
}

/** Time to encode a million chunks. */
function encodingTime(): Picture {
  const cpu = rowOf(tableOf(source, 'Encoder', ['Goal', 'Figure']), 'Goal', 'bare onnxruntime');
  const gpu = rowOf(tableOf(source, 'GPU', ['Goal', 'Figure']), 'Goal', 'documents through gRPC');
  const speed = numbersOf(cpu, 'Figure', 4).find((number) => number > 1_000) ?? 0;
  const [millions = 0] = numbersOf(gpu, 'Figure', 1);
  const rows = [
    { name: 'two cores (Zen 4)', tokens: speed },
    { name: 'one H200', tokens: millions * 1e6 },
  ].map(({ name, tokens }): Bar => {
    const minutes = (chunks * tokensOfChunk) / tokens / 60;
    const value = minutes < 2 ? `${Math.round(minutes * 60)} s` : `${Math.round(minutes)} min`;
    return { name, value, parts: [{ size: minutes, look: 'own' }] };
  });
  return barPicture(
    'Time to encode a million chunks',
    `Chunks of ${tokensOfChunk} tokens, with minilm-l6-maxsim.`,
    rows,
  );
}

function barPicture(title: string, caption: string, rows: readonly Bar[], markAt?: number): Picture {
  const description = rows.map(({ name, value }) => `${name}: ${value}`).join('; ');
  return { title, caption, description, draw: (width) => bars(rows, width, markAt) };
}

const makers: Readonly<Record<string, () => Picture>> = {
  alignment: () => alignment,
  languages: () => languages,
  peers,
  candidates,
  encoders,
  space,
  time: encodingTime,
};

/** A picture as the generator takes it: a block of a language of its own. */
export function pictureBlock(name: string, wide: number): string {
  const make = makers[name];
  if (make === undefined) throw new Error(`there is no picture "${name}"`);
  return `\`\`\`picture\n${figure(name, make(), wide)}\n\`\`\`\n`;
}
