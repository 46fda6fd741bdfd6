/**
 * From token ids to the sequences a late-interaction model reads, by the rules of ColBERT (Khattab and
 * Zaharia, SIGIR 2020, section 3.2; PyLate's `tokenize`):
 *
 *   query     CLS [prefix] tokens SEP, padded with MASK up to `query_length` when the model expands queries;
 *             MASK positions are not attended unless `attend_to_expansion_tokens`; every position scores
 *   document  CLS [prefix] tokens SEP; positions whose token is on the skip-list (punctuation) yield no
 *             row, also those of the prefix
 *
 * The prefix stands at position 1 and is one token or several. Queries longer than the limit are truncated; documents come in
 * windows that fit.
 */
import { assertInvariant } from '../../errors.ts';

export interface ColbertRules {
  /** Ids before the text, after the prefix was put at position 1 (`CLS prefix`). */
  readonly queryHead: readonly number[];
  readonly documentHead: readonly number[];
  /** White space that ends the prefix and is tokenised with the text: put before every text. */
  readonly queryLead: string;
  readonly documentLead: string;
  /** Ids after the text (`SEP`). */
  readonly tail: readonly number[];
  /** Positions of a query and of a document window, special tokens included. */
  readonly queryPositionsMax: number;
  readonly documentPositionsMax: number;
  /** Absent for models that do not expand queries; their queries end with the tail. Shorter ones get so many positions. */
  readonly expansion:
    | { readonly maskId: number; readonly attended: boolean; readonly positions: number }
    | undefined;
  readonly skipIds: ReadonlySet<number>;
}

/** One text as the model reads it. */
export interface Sequence {
  readonly ids: Int32Array;
  /** Leading positions with attention 1; the rest of `ids` has attention 0. */
  readonly attended: number;
  /** 1 = this position yields a row; absent = all do. */
  readonly kept: Uint8Array | undefined;
  /** Rows it yields. */
  readonly rows: number;
}

/** Content tokens that fit a document window. */
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
