/**
 * Makes the sequences that a late-interaction model reads of token ids, by the rules of ColBERT (Khattab and Zaharia, SIGIR 2020,
 * section 3.2; PyLate's `tokenize`):
 *
 *   query     CLS [prefix] tokens SEP, padded with MASK up to `query_length` when the model expands queries;
 *             MASK positions are not attended unless `attend_to_expansion_tokens`; every position yields a row
 *   document  CLS [prefix] tokens SEP; positions whose token is on the skip-list (punctuation) yield no row, not even in
 *             the prefix
 *
 * The prefix begins at position 1 and has one token or several. Queries longer than the limit are cut; documents come in windows
 * that fit.
 */
import { assertInvariant } from '../../errors.ts';

export interface ColbertRules {
  /** Ids before the text (`CLS prefix`). */
  readonly queryHead: readonly number[];
  readonly documentHead: readonly number[];
  /** White space at the end of the prefix. It is put before every text, because it is tokenised with the text. */
  readonly queryLead: string;
  readonly documentLead: string;
  /** Ids after the text (`SEP`). */
  readonly tail: readonly number[];
  /** Positions of a query and of a document window, special tokens included. */
  readonly queryPositionsMax: number;
  readonly documentPositionsMax: number;
  /** Queries with fewer than `positions` are filled up with MASK. Absent for models that do not expand queries. */
  readonly expansion:
    | { readonly maskId: number; readonly attended: boolean; readonly positions: number }
    | undefined;
  readonly skipIds: ReadonlySet<number>;
}

/** One text as the model reads it. */
export interface Sequence {
  readonly ids: Int32Array;
  /** So many leading positions have attention 1, the others 0. */
  readonly attended: number;
  /** u8 [ids]: 1 = the position yields a row. Absent = all do. */
  readonly kept: Uint8Array | undefined;
  /** Positions that yield a row. */
  readonly rows: number;
}

/** The most tokens of a text that fit into a document window. */
export function windowTokensMax(rules: ColbertRules): number {
  return rules.documentPositionsMax - rules.documentHead.length - rules.tail.length;
}

export function querySequence(rules: ColbertRules, tokens: Int32Array): Sequence {
  const content = Math.min(
    tokens.length,
    rules.queryPositionsMax - rules.queryHead.length - rules.tail.length,
  );
  const real = rules.queryHead.length + content + rules.tail.length;
  const length = Math.max(real, rules.expansion?.positions ?? 0);
  const ids = new Int32Array(length);
  fill(ids, rules.queryHead, tokens.subarray(0, content), rules.tail);
  if (rules.expansion !== undefined) ids.fill(rules.expansion.maskId, real);
  return {
    ids,
    attended: rules.expansion?.attended === true ? length : real,
    kept: undefined,
    rows: length,
  };
}

export function documentSequence(rules: ColbertRules, tokens: Int32Array): Sequence {
  const length = rules.documentHead.length + tokens.length + rules.tail.length;
  assertInvariant(length <= rules.documentPositionsMax, 'a document window exceeds the positions');
  const ids = new Int32Array(length);
  fill(ids, rules.documentHead, tokens, rules.tail);
  if (rules.skipIds.size === 0) return { ids, attended: length, kept: undefined, rows: length };
  const kept = new Uint8Array(length).fill(1);
  let rows = length;
  for (let i = 0; i < length; i++) {
    if (!rules.skipIds.has(ids[i]!)) continue;
    kept[i] = 0;
    rows--;
  }
  return { ids, attended: length, kept, rows };
}

function fill(ids: Int32Array, head: readonly number[], tokens: Int32Array, tail: readonly number[]): void {
  ids.set(head, 0);
  ids.set(tokens, head.length);
  ids.set(tail, head.length + tokens.length);
}
