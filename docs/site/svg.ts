/** Pictures as SVG text, drawn when the site is built. The theme colours them, so they follow light and dark. */

export interface Picture {
  readonly title: string;
  readonly caption: string;
  /** Says what the marks show, for those who do not see them. */
  readonly description: string;
  readonly draw: (width: number) => Drawing;
}

export interface Drawing {
  readonly height: number;
  readonly marks: readonly string[];
}

/** A picture for narrow screens and one of this width for wide ones. The theme shows the one that fits. */
export function figure(name: string, { title, caption, description, draw }: Picture, wide: number): string {
  const drawings = Object.entries({ narrow: 340, wide }).map(([look, width]) => {
    const { height, marks } = draw(width);
    const id = `${name}-${look}`;
    return `<svg class="${look}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}">
<desc id="${id}">${escaped(`${title}: ${description}`)}</desc>
${marks.join('\n')}</svg>`;
  });
  const legend = `<figcaption><strong>${escaped(title)}.</strong> ${escaped(caption)}</figcaption>`;
  return `<figure class="picture" id="${name}" v-pre>${drawings.join('\n')}${legend}</figure>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

type Attributes = Readonly<Record<string, string | number>>;

export function shape(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${typeof value === 'number' ? Number(value.toFixed(1)) : value}"`,
  );
  return `<${name}${written.join('')}>${escaped(content)}</${name}>`;
}

export function words(x: number, y: number, text: string, attributes: Attributes = {}): string {
  return shape('text', { x, y, ...attributes }, text);
}

export type Look = 'own' | 'peer' | 'other';

export interface Point {
  readonly recall: number;
  readonly ms: number;
  readonly name?: string;
  /** The side on which the name stands. */
  readonly side?: 'left' | 'right' | 'below';
}

export interface Series {
  readonly look: Look;
  readonly points: readonly Point[];
  readonly joined?: boolean;
}

const sides = {
  left: { right: -9, down: -6, anchor: 'end' },
  right: { right: 10, down: 2, anchor: 'start' },
  below: { right: 0, down: 22, anchor: 'middle' },
} as const;
const plot = { left: 40, right: 18, top: 32, bottom: 52, height: 348 } as const;

/** Latency over recall. Both scales are logarithmic, that of recall by what is missed: .9, .99 and .999 are equally far apart. */
export function latencyOverRecall(series: readonly Series[], width: number): Drawing {
  const all = series.flatMap(({ points }) => points);
  const bottom = plot.height - plot.bottom;
  const x = scale(
    [0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999],
    all.map(({ recall }) => recall),
    // All of them stands at the right edge.
    (recall) => -Math.log(1 - Math.min(recall, 0.999)),
    [plot.left, width - plot.right],
  );
  const y = scale(
    [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
    all.map(({ ms }) => ms),
    Math.log,
    [bottom, plot.top],
  );
  const grid = [
    ...x.ticks.flatMap((tick) => [
      shape('path', { d: `M${x.at(tick).toFixed(1)} ${plot.top}V${bottom}`, class: 'grid' }),
      words(x.at(tick), bottom + 18, String(tick).slice(1), { 'text-anchor': 'middle' }),
    ]),
    ...y.ticks.flatMap((tick) => [
      shape('path', { d: `M${plot.left} ${y.at(tick).toFixed(1)}H${width - plot.right}`, class: 'grid' }),
      words(plot.left - 8, y.at(tick) + 4, String(tick), { 'text-anchor': 'end' }),
    ]),
    words(plot.left, plot.height - 8, 'recall@10 →'),
    words(0, 12, '↑ ms, median'),
  ];
  const placed = series.map(({ points, ...one }) => ({
    ...one,
    points: points.map((point) => ({ ...point, cx: x.at(point.recall), cy: y.at(point.ms) })),
  }));
  const lines = placed
    .filter(({ joined }) => joined)
    .map(({ look, points }) => {
      const line = points.map(({ cx, cy }) => `${cx.toFixed(1)},${cy.toFixed(1)}`).join(' ');
      return shape('polyline', { points: line, class: `line ${look}` });
    });
  const dots = placed.flatMap(({ look, points }) =>
    points.map(({ cx, cy }) => shape('circle', { cx, cy, r: 4.5, class: `dot ${look}` })),
  );
  const names = placed.flatMap(({ look, points }) =>
    points.map(({ name = '', side = 'right', cx, cy }) => {
      const { right, down, anchor } = sides[side];
      return words(cx + right, cy + down, name, { class: `name ${look}`, 'text-anchor': anchor });
    }),
  );
  return { height: plot.height, marks: [...grid, ...lines, ...dots, ...names] };
}

/** A logarithmic scale between the nearest ticks around the values. */
function scale(
  ticks: readonly number[],
  values: readonly number[],
  measure: (value: number) => number,
  [from, to]: readonly [number, number],
): { readonly ticks: readonly number[]; at(value: number): number } {
  const first = ticks.findLastIndex((tick) => tick <= Math.min(...values));
  const last = ticks.findIndex((tick) => tick >= Math.max(...values));
  const shown = ticks.slice(Math.max(0, first), last < 0 ? undefined : last + 1);
  const [low, high] = [measure(shown[0] ?? 1), measure(shown.at(-1) ?? 1)];
  return { ticks: shown, at: (value) => from + ((measure(value) - low) / (high - low)) * (to - from) };
}

export interface Bar {
  readonly name: string;
  readonly value: string;
  readonly parts: readonly { readonly size: number; readonly look: Look }[];
}

const rowHeight = 56;

/** Bars from a common line, each under its name. A mark stands where the size is `markAt`. */
export function bars(rows: readonly Bar[], width: number, markAt?: number): Drawing {
  const longest = Math.max(...rows.map(({ parts }) => parts.reduce((sum, { size }) => sum + size, 0)));
  const at = (size: number): number => (size / longest) * width;
  const marks = rows.flatMap(({ name, value, parts }, row) => {
    const top = row * rowHeight;
    let left = 0;
    const drawn = parts.map(({ size, look }) => {
      const bar = shape('rect', { x: left, y: top + 26, width: at(size), height: 16, class: `bar ${look}` });
      left += at(size);
      return bar;
    });
    const mark = markAt === undefined ? [] : [`M${at(markAt).toFixed(1)} ${top + 22}v24`];
    return [
      words(0, top + 16, name, { class: 'name' }),
      words(width, top + 16, value, { class: 'value', 'text-anchor': 'end' }),
      ...drawn,
      ...mark.map((d) => shape('path', { d, class: 'mark' })),
    ];
  });
  return { height: rows.length * rowHeight, marks };
}
