/** Finds the part of the text that each row of a sequence comes from. */
import { chunkingProblem, tokenWindows } from './chunker.ts';
import { documentSequence, querySequence, type Sequence } from './colbert-rules.ts';
import type { ChunkingParameters } from '../protocol/contract.ts';
import type { ServedModel } from './served-model.ts';
import type { TokenPlaces } from './tokenizer/token-places.ts';

export interface LocatedChunk {
  readonly chunking: ChunkingParameters;
  readonly chunkIndex: number;
}

export interface RowSpans {
  /** u32 [rows], in UTF-16 units. Start and end are equal for rows that come from no text (special tokens). */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** `chunk` absent: the text is a query. Returns undefined when the text has no such chunk. */
export function spansOfRows(
  { rules, windowTokensMax }: Pick<ServedModel, 'rules' | 'windowTokensMax'>,
  places: TokenPlaces,
  chunk: LocatedChunk | undefined,
): RowSpans | undefined {
  if (chunk === undefined) {
    return spans(querySequence(rules, places.ids), places, { head: rules.queryHead.length, first: 0 });
  }
  if (chunkingProblem(chunk.chunking, windowTokensMax) !== undefined) return undefined;
  const window = [...tokenWindows(places.ids.length, chunk.chunking, windowTokensMax)][chunk.chunkIndex];
  if (window === undefined) return undefined;
  const sequence = documentSequence(rules, places.ids.subarray(window.start, window.end));
  return spans(sequence, places, { head: rules.documentHead.length, first: window.start, end: window.end });
}

function spans(
  sequence: Sequence,
  places: TokenPlaces,
  { head, first, end = places.ids.length }: { head: number; first: number; end?: number },
): RowSpans {
  const starts = new Uint32Array(sequence.rows);
  const ends = new Uint32Array(sequence.rows);
  let row = 0;
  for (let position = 0; position < sequence.ids.length; position++) {
    if (sequence.kept?.[position] === 0) continue;
    const token = first + position - head;
    if (position >= head && token < end && sequence.ids[position] === places.ids[token]) {
      starts[row] = places.starts[token]!;
      ends[row] = places.ends[token]!;
    }
    row++;
  }
  return { starts, ends };
}
