/**
 * Where the token vectors (rows) of a chunk lie in the text of its document, mostly in a byte each. All numbers count Unicode code
 * points.
 *
 * A row is a step from the start of the row before it (of the first row: from the start of the chunk), and a length. A step of at
 * most 15 and a length of at most 14 are the halves of one byte. Other rows are the byte 0x0f, then step and length in LEB128. A
 * row that comes from no text (a special token) has the step 0 and the length 0.
 *
 * A row may be pooled of several tokens. Its place is that of the token that represents it. The other tokens follow the last row:
 * first the bytes 0x0f 0 0, then each token as a row would stand there (the first one steps from the start of the chunk), and
 * behind it the number of its row in LEB128. Tokens that come from no text are left out. A reader that takes rows by their
 * number need not know this part.
 */

/** u32 of each chunk in `chunkRanges`: start and end of the chunk, and the bytes of the places of its rows. */
export const rangeFields = 3;

const stepMax = 15;
const lengthMax = 14;
const escaped = 0x0f;

export interface Place {
  readonly start: number;
  readonly end: number;
}

/** u32 [tokens] each. Start and end are equal for a token that comes from no text. */
export interface Spans {
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** How the tokens of texts became rows. Both are empty where each token has its own row. */
export interface PooledTokens {
  /** u32 [rows]: the token of the text that represents each row, ascending within a text. */
  readonly representatives: Uint32Array;
  /** u32 [tokens]: the row of the text that each token is part of. */
  readonly pooledOf: Uint32Array;
}

export function noPooling(): PooledTokens {
  return { representatives: new Uint32Array(), pooledOf: new Uint32Array() };
}

/** The places of a row. */
export interface RowPlaces {
  /** That of the token which represents the row; absent for one that comes from no text. */
  readonly place: Place | undefined;
  /** Those of all its tokens that come from text, ascending. */
  readonly all: readonly Place[];
}

/** `start`: that of the chunk. No token begins before the token before it. */
export function packRowPlaces(
  start: number,
  { starts, ends }: Spans,
  { representatives, pooledOf }: PooledTokens = noPooling(),
): Uint8Array {
  const bytes: number[] = [];
  let before = start;
  const push = (token: number): void => {
    const length = ends[token]! - starts[token]!;
    const step = length === 0 ? 0 : starts[token]! - before;
    if (step <= stepMax && length <= lengthMax) {
      bytes.push((step << 4) | length);
    } else {
      bytes.push(escaped);
      for (const number of [step, length]) pushVarint(bytes, number);
    }
    before += step;
  };
  const isRow = pooledOf.length === 0 ? undefined : new Set(representatives);
  const others: number[] = [];
  for (const [token, from] of starts.entries()) {
    if (isRow === undefined || isRow.has(token)) push(token);
    else if (ends[token]! > from) others.push(token);
  }
  if (others.length === 0) return Uint8Array.from(bytes);
  bytes.push(escaped, 0, 0);
  before = start;
  for (const token of others) {
    push(token);
    pushVarint(bytes, pooledOf[token]!);
  }
  return Uint8Array.from(bytes);
}

/** The places of each row. `start`: that of the chunk. */
export function unpackRowPlaces(start: number, bytes: Uint8Array): RowPlaces[] {
  const rows: { readonly place: Place | undefined; readonly all: Place[] }[] = [];
  let at = 0;
  let before = start;
  let areRows = true;
  const varint = (): number => {
    let number = 0;
    for (let shift = 1; ; shift *= 0x80) {
      const byte = bytes[at++] ?? 0;
      number += (byte & 0x7f) * shift;
      if (byte < 0x80) return number;
    }
  };
  while (at < bytes.length) {
    const byte = bytes[at++]!;
    const [step, length] = byte === escaped ? [varint(), varint()] : [byte >> 4, byte & 0x0f];
    before += step;
    const place = length === 0 ? undefined : { start: before, end: before + length };
    if (byte === escaped && place === undefined) {
      areRows = false;
      before = start;
    } else if (areRows) {
      rows.push({ place, all: place === undefined ? [] : [place] });
    } else if (place !== undefined) {
      rows[varint()]?.all.push(place);
    }
  }
  for (const { all } of rows) all.sort((one, other) => one.start - other.start || one.end - other.end);
  return rows;
}

function pushVarint(bytes: number[], number: number): void {
  for (; number >= 0x80; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  bytes.push(number);
}
