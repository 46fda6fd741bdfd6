/** A line chart as inline SVG, fit for a page of its own without scripts. */
import { formatNumber } from './report.ts';

export interface Series {
  readonly name: string;
  /** One value for each x; undefined or not finite = none there. */
  readonly values: readonly (number | undefined)[];
  readonly dashed?: boolean;
}

export interface ChartOptions {
  readonly title: string;
  readonly x: readonly number[];
  readonly xTitle: string;
  readonly series: readonly Series[];
  /** Values above are drawn at the upper edge. */
  readonly yMax?: number;
}

const palette = [
  '#2e7dd1',
  '#e08a1e',
  '#c0392b',
  '#27976b',
  '#8e5ad1',
  '#7f8c8d',
  '#b5892c',
  '#4a6fa5',
  '#a03c78',
  '#5f8f2f',
];
const width = 460;
const height = 250;
const edges = { left: 48, right: 16, top: 12, bottom: 204 };

/** Both axes start at 0. */
export function renderChart(options: ChartOptions): string {
  const { x, series } = options;
  const values = series.flatMap((line) => line.values.filter(isNumber));
  const xTicks = ticks(Math.max(...x, 1e-9));
  const yTicks = ticks(Math.min(Math.max(...values, 1e-9), options.yMax ?? Infinity));
  const xMax = xTicks.at(-1) ?? 1;
  const yMax = yTicks.at(-1) ?? 1;
  const cut = values.some((value) => value > yMax) ? ` (drawn up to ${tick(yMax)})` : '';
  const title = options.title + cut;
  const px = (value: number): string =>
    (edges.left + (value / xMax) * (width - edges.left - edges.right)).toFixed(1);
  const py = (value: number): string =>
    (edges.bottom - (Math.min(value, yMax) / yMax) * (edges.bottom - edges.top)).toFixed(1);
  const grid = [
    ...yTicks.map(
      (value) =>
        `<line x1="${edges.left}" x2="${width - edges.right}" y1="${py(value)}" y2="${py(value)}"/><text x="${edges.left - 6}" y="${Number(py(value)) + 4}" text-anchor="end">${tick(value)}</text>`,
    ),
    ...xTicks.map(
      (value) => `<text x="${px(value)}" y="${edges.bottom + 16}" text-anchor="middle">${tick(value)}</text>`,
    ),
  ].join('');
  const lines = series.map((line, at) => renderLine(line, colorOf(at), x, { px, py })).join('');
  const legend = series
    .map((line, at) => `<span><b style="color:${colorOf(at)}">&#9632;</b> ${escapeHtml(line.name)}</span>`)
    .join('');
  return `<figure><h2>${escapeHtml(title)}</h2><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(title)}"><g class="grid">${grid}</g>${lines}<text x="${(edges.left + width - edges.right) / 2}" y="${height - 8}" text-anchor="middle">${escapeHtml(options.xTitle)}</text></svg><figcaption>${legend}</figcaption></figure>`;
}

function renderLine(
  line: Series,
  color: string,
  x: readonly number[],
  { px, py }: { readonly px: (value: number) => string; readonly py: (value: number) => string },
): string {
  const points = line.values.flatMap((value, at) =>
    isNumber(value)
      ? [{ x: px(x[at] ?? 0), y: py(value), reported: `${line.name}: ${formatNumber(value)}` }]
      : [],
  );
  const path = points.map((point) => `${point.x},${point.y}`).join(' ');
  const dots = line.dashed
    ? ''
    : points
        .map(
          (point) =>
            `<circle cx="${point.x}" cy="${point.y}" r="2.5" fill="${color}"><title>${escapeHtml(point.reported)}</title></circle>`,
        )
        .join('');
  const dash = line.dashed === true ? ' stroke-dasharray="5 4"' : '';
  return `<polyline fill="none" stroke="${color}" stroke-width="1.8"${dash} points="${path}"/>${dots}`;
}

/** 0 and up to five round numbers, the last one at or above `maximum`. */
export function ticks(maximum: number): readonly number[] {
  const rough = maximum / 4;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((each) => each >= rough) ?? rough;
  const count = Math.ceil(maximum / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => at * step);
}

/** Round numbers need no digits to spare. */
function tick(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function isNumber(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value);
}

function colorOf(at: number): string {
  return palette[at % palette.length] ?? '#000';
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
