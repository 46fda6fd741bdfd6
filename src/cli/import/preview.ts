/** Says before an import which fields become what, with their types, and how many documents there are if that is known. */
import { isRawJson } from '../json.ts';
import { fields } from '../output.ts';
import { isProblem, type InputDocument } from './document.ts';
import type { LookedAhead } from './look-ahead.ts';
import type { Source } from './sources/source.ts';

export interface Preview {
  /** `null` = made of the content. */
  readonly id: readonly (string | null)[];
  readonly text: readonly string[];
  /** Field of the metadata -> types of its values. */
  readonly metadata: Readonly<Record<string, readonly string[]>>;
  /** Whether there are documents that expire. */
  readonly expires_at: boolean;
  /** Rows that were looked at. */
  readonly rows: number;
  /** Rows of the whole input; `null` = not known yet. */
  readonly rows_total: number | null;
}

export function previewOf(source: Source, { head, isWhole }: LookedAhead): Preview {
  const documents = head.map(({ item }) => item).filter((item): item is InputDocument => !isProblem(item));
  const types = new Map<string, Set<string>>();
  for (const { document } of documents) {
    for (const [name, value] of Object.entries(document.metadata ?? {}))
      types.set(name, (types.get(name) ?? new Set()).add(typeOf(value)));
  }
  return {
    id: [...new Set(documents.map(({ idField }) => idField ?? null))],
    text: [...new Set(documents.flatMap(({ textFields }) => textFields))],
    metadata: Object.fromEntries([...types].map(([name, found]) => [name, [...found]])),
    expires_at: documents.some(({ document }) => document.expires_at !== undefined),
    rows: head.length,
    rows_total: isWhole ? head.length : rowsIn(source),
  };
}

export function previewText(
  { name }: Source,
  { id, text, metadata, expires_at: expires, rows, rows_total: total }: Preview,
): string {
  const columns = Object.entries(metadata).map(([field, types]) => `${field} (${types.join(' or ')})`);
  return fields([
    ['source', total === null ? name : `${name}, ${total} rows`],
    ['id', id.map((field) => field ?? 'made of the content').join(', ')],
    ['text', text.join(', ')],
    ['metadata', columns.length === 0 ? 'none' : columns.join(', ')],
    ...(expires ? [['expiry', 'expires_at'] as const] : []),
    ...(total === rows ? [] : [['looked at', `the first ${rows} rows`] as const]),
  ]);
}

function rowsIn({ files, rowsPromised }: Source): number | null {
  return (
    files.reduce<number | null>(
      (sum, { rowCount }) => (sum === null || rowCount === undefined ? null : sum + rowCount),
      0,
    ) ??
    rowsPromised ??
    null
  );
}

function typeOf(value: unknown): string {
  // A field of a struct that has no value.
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  return isRawJson(value) ? 'number' : typeof value;
}
