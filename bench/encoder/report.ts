/** The report of the encoder benchmark, as JSON and as a table. */
import type { Environment } from '../lib/environment.ts';
import type { Spread } from '../lib/statistics.ts';
import { markdownTable, spreadText } from '../lib/table.ts';
import type { Agreement } from '../lib/model/agreement.ts';

export interface EncoderRow {
  readonly contender: string;
  readonly mix: string;
  readonly kind: 'query' | 'document';
  readonly texts: number;
  /** Tokens of a round, special tokens excluded. */
  readonly tokens: number;
  /** How this side ran. */
  readonly settings: string;
  readonly tokens_per_second: Spread;
  readonly texts_per_second: Spread;
  /** Less disturbed by other work on the machine; null where the system does not tell. */
  readonly tokens_per_cpu_second: Spread | null;
  /** Ours by theirs, of the same rounds; null for our own rows. */
  readonly ours_by_theirs: Spread | null;
  readonly ours_by_theirs_per_cpu_second: Spread | null;
  /** Null where there is nothing to compare. */
  readonly agreement_with_ours: Agreement | null;
  /** With sentence-transformers in f32 on the source weights, where that side ran. */
  readonly agreement_with_f32: Agreement | null;
}

export interface RatioDetail {
  readonly value: number | null;
  readonly mix: string;
  readonly target: number;
  /** The contender with the lowest ratio: the one that `value` is of. */
  readonly against?: string;
  readonly spread?: Spread;
  readonly per_cpu_second?: Spread | null;
  /** Ratios to the other contenders of this goal that ran. */
  readonly others?: Readonly<Record<string, Spread>>;
  readonly reason?: string;
}

export interface EncoderReport {
  readonly environment: Environment;
  readonly settings: {
    readonly model: string;
    /** `cpu` or `cuda:N`. */
    readonly device: string;
    /** Encoder processes of ours. */
    readonly processes: number;
    /** Client processes of one encoder process. */
    readonly clients: number;
    readonly source: string;
    readonly texts: number;
    readonly rounds: number;
    /** Versions of what each side runs on. */
    readonly runtimes: Readonly<Record<string, string>>;
  };
  readonly rows: readonly EncoderRow[];
  readonly skipped: readonly { readonly contender: string; readonly reason: string }[];
  readonly ratios: Readonly<Record<string, number | null>>;
  readonly ratio_details: Readonly<Record<string, RatioDetail>>;
}

export function renderTable({ environment, settings, rows, skipped, ratio_details }: EncoderReport): string {
  const lines = rows.map((row) => {
    return [
      row.mix,
      row.contender,
      spreadText(row.tokens_per_second, 0),
      row.texts_per_second.median.toFixed(0),
      row.tokens_per_cpu_second?.median.toFixed(0) ?? '',
      row.ours_by_theirs === null ? '' : spreadText(row.ours_by_theirs, 2),
      row.ours_by_theirs_per_cpu_second?.median.toFixed(2) ?? '',
      cosines(row.agreement_with_ours),
      cosines(row.agreement_with_f32),
      row.settings,
    ];
  });
  const header = [
    'mix',
    'contender',
    'tokens/s (min..max)',
    'texts/s',
    'tokens/CPU s',
    'ours / theirs (min..max)',
    'the same per CPU s',
    'cosine to ours, mean / min',
    'cosine to f32, mean / min',
    'settings',
  ];
  const ratios = Object.entries(ratio_details).map(
    ([name, { value, mix, target, against, per_cpu_second, others = {}, reason }]) =>
      value === null
        ? `${name}: null (${reason})`
        : `${name}: ${value.toFixed(2)} (per CPU second ${per_cpu_second?.median.toFixed(2) ?? 'unknown'}) against ${against} on ${mix}, target ${target}: ${[value >= target ? 'reached' : 'missed', ...Object.entries(others).map(([other, { median }]) => `${median.toFixed(2)} against ${other}`)].join('; ')}`,
  );
  const runtimes = Object.entries(settings.runtimes).map(([side, version]) => `${side} ${version}`);
  return [
    `${environment.cpu}, ${environment.threads.join(', ')} threads, commit ${environment.commit}`,
    `${settings.model} on ${settings.device}, encoder processes: ${settings.processes}; ${settings.source}; ${settings.texts} texts, ${settings.rounds} rounds; ${runtimes.join(', ')}`,
    '',
    ...markdownTable(header, lines),
    '',
    ...skipped.map(({ contender, reason }) => `${contender}: skipped (${reason})`),
    ...ratios,
    '',
  ].join('\n');
}

function cosines(agreement: Agreement | null): string {
  return agreement === null
    ? ''
    : `${agreement.mean_cosine.toFixed(5)} / ${agreement.minimum_cosine.toFixed(5)}`;
}
