/**
 * Where the token vectors (rows) of a chunk lie in the text of its document, in one or two bytes each. All numbers count Unicode
 * code points.
 *
 * A row is a step from the start of the row before it (of the first row: from the start of the chunk), and a length. A step of at
 * most 15 and a length of at most 14 are the halves of one byte. Other rows are the byte 0x0f, then step and length in LEB128. A
 * row that comes from no text (a special token) has the step 0 and the length 0.
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

/** `start`: that of the chunk. No row begins before the row before it. */
export function packRowPlaces(start: number, starts: Uint32Array, ends: Uint32Array): Uint8Array {
  const bytes: number[] = [];
  let before = start;
  for (const [row, from] of starts.entries()) {
    const length = ends[row]! - from;
    const step = length === 0 ? 0 : from - before;
    if (step <= stepMax && length <= lengthMax) {
      bytes.push((step << 4) | length);
    } else {
      bytes.push(escaped);
      for (const number of [step, length]) pushVarint(bytes, number);
    }
    before += step;
  }
  return Uint8Array.from(bytes);
}

/** The place of each row; `undefined` for a row that comes from no text. */
export function unpackRowPlaces(start: number, bytes: Uint8Array): (Place | undefined)[] {
  const places: (Place | undefined)[] = [];
  let at = 0;
  const varint = (): number => {
    let number = 0;
    for (let shift = 1; ; shift *= 0x80) {
      const byte = bytes[at++] ?? 0;
      number += (byte & 0x7f) * shift;
      if (byte < 0x80) return number;
    }
  };
  for (let before = start; at < bytes.length;) {
    const byte = bytes[at++]!;
    const [step, length] = byte === escaped ? [varint(), varint()] : [byte >> 4, byte & 0x0f];
    before += step;
    places.push(length === 0 ? undefined : { start: before, end: before + length });
  }
  return places;
}

function pushVarint(bytes: number[], number: number): void {
  for (; number >= 0x80; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  bytes.push(number);
}
