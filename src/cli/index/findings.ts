/** The result of a check of stored files. */
import { table, type CommandResult } from '../output.ts';

export interface Problem {
  /** Empty for a file that belongs to no index. */
  readonly index_id: string;
  readonly file: string;
  readonly problem: string;
}

export interface Findings {
  indexes: number;
  segments: number;
  records: number;
  bytes: number;
  readonly problems: Problem[];
  /** Files that the catalog does not name. They are new, or the next start removes them. */
  readonly unreferenced: string[];
}

export function noFindings(): Findings {
  return { indexes: 0, segments: 0, records: 0, bytes: 0, problems: [], unreferenced: [] };
}

export function report({ problems }: Findings, indexId: string, file: string, problem: string): void {
  problems.push({ index_id: indexId, file, problem });
}

export function verifyResult({ problems, unreferenced, ...counts }: Findings): CommandResult {
  const { records, segments, indexes } = counts;
  return {
    document: { ...counts, problems, unreferenced_files: unreferenced },
    text: [
      `${records} records of ${segments} segments of ${indexes} indexes verified, ${problems.length} problems`,
      ...(problems.length === 0 ? [] : [problemsTable(problems)]),
      ...(unreferenced.length === 0 ? [] : [`not in the catalog: ${unreferenced.join(', ')}`]),
    ].join('\n'),
    failed: problems.length > 0,
  };
}

export function problemsTable(problems: readonly Problem[]): string {
  return table(
    ['index', 'file', 'problem'],
    problems.map(({ index_id: id, file, problem }) => [id, file, problem]),
  );
}
