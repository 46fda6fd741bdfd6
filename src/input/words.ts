/**
 * Words of a text, for people. A model cuts words into pieces, which mean nothing to them. The service and the console join the
 * pieces here.
 */

/** In UTF-16 units of the text, `end` excluded. */
export interface Word {
  readonly start: number;
  readonly end: number;
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' });

/** A word is looked for in the block of this many units that a place lies in, and in the blocks beside it. */
const blockUnits = 128;

/**
 * The word in which a UTF-16 unit lies, or the space or the punctuation mark between words. A word that goes on beyond the
 * blocks beside the unit ends there. So the time does not grow with the length of the text.
 */
export function wordAt(text: string, unit: number): Word | undefined {
  const block = unit - (unit % blockUnits);
  const from = wholePair(text, Math.max(0, block - blockUnits));
  const near = text.slice(from, wholePair(text, block + 2 * blockUnits));
  const found = segmenter.segment(near).containing(unit - from);
  return found && { start: from + found.index, end: from + found.index + found.segment.length };
}

/** The words that a part of a text touches, as one. `undefined` where the part is no text. */
export function wordOf(text: string, { start, end }: Word): Word | undefined {
  if (end <= start) return undefined;
  const [first, last] = [wordAt(text, start), wordAt(text, end - 1)];
  return first && last && { start: first.start, end: Math.max(first.end, last.end) };
}

/** Whether a part of a text is more than spaces and punctuation. */
export function saysSomething(text: string, { start, end }: Word): boolean {
  return /[\p{L}\p{N}\p{S}]/u.test(text.slice(start, end));
}

/** A place between the halves of a surrogate pair moves before the pair. */
function wholePair(text: string, unit: number): number {
  const isBetween =
    (text.charCodeAt(unit) & 0xfc00) === 0xdc00 && (text.charCodeAt(unit - 1) & 0xfc00) === 0xd800;
  return isBetween ? unit - 1 : unit;
}

/** Places of a text in Unicode code points, as the service counts them, and in UTF-16 units, as JavaScript does. */
export interface CodePoints {
  /** In code points. */
  readonly length: number;
  /** Where a code point begins. The end of the text for a place beyond it. */
  unitOf(point: number): number;
  /** The code point in which a unit lies. */
  pointOf(unit: number): number;
}

export function codePointsOf(text: string): CodePoints {
  if (!/[\ud800-\udfff]/.test(text)) {
    const within = (place: number): number => Math.min(place, text.length);
    return { length: text.length, unitOf: within, pointOf: within };
  }
  /** The unit where each code point begins, and the length of the text. */
  const units = new Uint32Array(text.length + 1);
  let length = 0;
  for (let unit = 0; unit < text.length; length += 1) {
    unit += wholePair(text, unit + 1) === unit ? 2 : 1;
    units[length + 1] = unit;
  }
  return {
    length,
    unitOf: (point) => units[Math.min(point, length)]!,
    pointOf: (unit) => {
      let [first, end] = [0, length + 1];
      while (end - first > 1) {
        const middle = (first + end) >> 1;
        if (units[middle]! <= unit) first = middle;
        else end = middle;
      }
      return first;
    },
  };
}
