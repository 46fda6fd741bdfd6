/**
 * Checkpoints that PyLate and sentence-transformers 6 saved, as `models/convert.sh` exports them (`test/fixtures/exports`, with the
 * programs that made them): for every text the service gives as many rows as those libraries, with the same values. The texts begin and end
 * with all kinds of white space, which PyLate removes and sentence-transformers does not. Every night the exports are made
 * again, which takes some gigabytes of Python packages. `TEST_EXPORTS=DIRECTORY` does the same at once, in that directory.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { rounds } from '../../rounds.ts';
import { sessionsOfTest } from '../../support/encoder/sessions.ts';
import { documentOf, queryOf, unquantisedRows } from '../../support/encoder/unquantised.ts';
import { repositoryRoot } from '../../support/running/launch.ts';

interface Expected {
  readonly texts: readonly string[];
  /** The leading values of each row of each text. */
  readonly queries: readonly (readonly (readonly number[])[])[];
  readonly documents: readonly (readonly (readonly number[])[])[];
}

const exports = path.resolve(import.meta.dirname, '../../fixtures/exports');
const fresh = process.env['TEST_EXPORTS'] ?? path.join(repositoryRoot, 'build/exports');
const isMade = process.env['TEST_EXPORTS'] !== undefined || rounds({ short: 0, nightly: 1 }) === 1;
const tolerance = 2e-4;

const names = [
  'pylate/modernbert',
  'pylate/xlm-roberta',
  'pylate/bert-odd',
  'multi-vector/bert-min',
  'multi-vector/modernbert-fixed',
  'multi-vector/xlm-roberta-unexpanded',
];

it.each(names)('%s: the rows of its own library', async (name) => {
  expect(await differences(path.join(exports, name))).toEqual([]);
});

it.runIf(isMade)(
  'the rows of both libraries, of exports that are made now',
  async () => {
    execFileSync(path.join(exports, 'generate.sh'), [fresh], { stdio: 'pipe' });
    for (const name of names) expect(await differences(path.join(fresh, name)), name).toEqual([]);
  },
  3_600_000,
);

/** Lists the texts that have another number of rows, or other values. */
async function differences(directory: string): Promise<readonly string[]> {
  const model = await loadModel(directory);
  const expected = JSON.parse(readFileSync(path.join(directory, 'expected.json'), 'utf8')) as Expected;
  const sessions = await sessionsOfTest(model);
  expect(expected.texts.length).toBeGreaterThan(30);
  const found: string[] = [];
  for (const [i, text] of expected.texts.entries()) {
    for (const [kind, sequence, rows] of [
      ['query', queryOf(model, text), expected.queries[i]!],
      ['document', documentOf(model, text), expected.documents[i]!],
    ] as const) {
      const vectors = await unquantisedRows(sessions, model.dim, sequence);
      const given = rows.map((row, r) => row.map((_, d) => vectors[r * model.dim + d]!));
      const isSame =
        vectors.length === rows.length * model.dim &&
        rows.every((row, r) => row.every((value, d) => Math.abs(value - given[r]![d]!) < tolerance));
      if (!isSame) found.push(`${kind} ${JSON.stringify(text)}: ${vectors.length / model.dim} rows`);
    }
  }
  return found;
}
