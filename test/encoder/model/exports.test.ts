/**
 * Checkpoints that PyLate and sentence-transformers 6 saved, as `models/convert.sh` exports them (`test/fixtures/exports`, with the
 * programs that made them): for every text as many rows as those libraries give, with the same values. The texts begin and end
 * with all kinds of white space, which PyLate removes and sentence-transformers does not.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { loadModel, type ServedModel } from '../../../src/encoder/model/served-model.ts';
import { sessionsOfTest } from '../../support/encoder/sessions.ts';
import { documentOf, queryOf, unquantisedRows } from '../../support/encoder/unquantised.ts';

interface Expected {
  readonly texts: readonly string[];
  /** The leading values of each row of each text. */
  readonly queries: readonly (readonly (readonly number[])[])[];
  readonly documents: readonly (readonly (readonly number[])[])[];
}

const exports = path.resolve(import.meta.dirname, '../../fixtures/exports');
const open = async (name: string): Promise<ServedModel> => loadModel(path.join(exports, name));
const tolerance = 2e-4;

it.each([
  'pylate/modernbert',
  'pylate/xlm-roberta',
  'pylate/bert-odd',
  'multi-vector/bert-min',
  'multi-vector/modernbert-fixed',
  'multi-vector/xlm-roberta-unexpanded',
])('%s: the rows of its own library', async (name) => {
  const model = await open(name);
  const expected = JSON.parse(readFileSync(path.join(exports, name, 'expected.json'), 'utf8')) as Expected;
  const sessions = await sessionsOfTest(model);
  expect(expected.texts.length).toBeGreaterThan(30);
  for (const [i, text] of expected.texts.entries()) {
    for (const [kind, sequence, rows] of [
      ['query', queryOf(model, text), expected.queries[i]!],
      ['document', documentOf(model, text), expected.documents[i]!],
    ] as const) {
      const where = `${kind} ${JSON.stringify(text)}`;
      const vectors = await unquantisedRows(sessions, model.dim, sequence);
      expect(vectors.length / model.dim, where).toBe(rows.length);
      const furthest = Math.max(
        ...rows.map((row, r) =>
          Math.max(...row.map((value, d) => Math.abs(value - vectors[r * model.dim + d]!))),
        ),
      );
      expect(furthest, where).toBeLessThan(tolerance);
    }
  }
});
