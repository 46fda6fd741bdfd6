/** The report of a benchmark as a file. */
import { writeFileSync } from 'node:fs';

/** Writes nothing where no file was asked for. */
export function writeJson(file: string | undefined, report: object): void {
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
}
