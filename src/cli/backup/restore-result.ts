/** The result of a restore. */
import type { Findings } from '../index/findings.ts';
import { fields, type CommandResult } from '../output.ts';
import type { Manifest } from './archive-format.ts';

export function restoreResult(
  restored: { readonly file: string; readonly directory?: string; readonly manifest: Manifest },
  { indexes, segments, records, problems }: Findings,
  remarks: readonly string[],
): CommandResult {
  const { file, directory, manifest } = restored;
  const rows = fields([
    ...(directory === undefined ? [] : [['data directory', directory] as const]),
    ['archive', file],
    ['made at', manifest.created_at],
    ['indexes', String(indexes)],
    ['segments', String(segments)],
    ['records', String(records)],
  ]);
  return {
    document: {
      directory: directory ?? null,
      created_at: manifest.created_at,
      maxsimd: manifest.maxsimd,
      indexes,
      segments,
      records,
      problems,
    },
    text: [rows, ...remarks].join('\n'),
  };
}
