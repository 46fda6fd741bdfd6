/**
 * The normaliser and the word splitter of BERT tokenizers. They agree with Hugging Face's `tokenizers` on every code point
 * (`normalizers/bert.rs`, `pre_tokenizers/bert.rs`). The JavaScript tokenizer library does not: it lowercases whole strings (a
 * final sigma differs), looks for Chinese characters in UTF-16 units, lowercases before it strips accents, and knows a newer
 * Unicode.
 *
 * The normaliser drops control characters and turns white space into spaces. It puts spaces around Chinese characters, decomposes
 * (NFD) and drops nonspacing marks, and lowercases each code point. Words end at white space. Punctuation is a word by itself.
 */

export interface BertNormalizerOptions {
  readonly cleanText: boolean;
  readonly chineseCharacters: boolean;
  readonly stripAccents: boolean;
  readonly lowercase: boolean;
}

/**
 * Code points that are marks, format characters, punctuation or decomposable in the Unicode of this runtime, and letters in the
 * tables of `tokenizers` (Unicode 8 for categories). Hexadecimal ranges, found by comparing all code points with `tokenizers`
 * 0.23.3.
 */
const laterCodePoints =
  '61d 7fd 890-891 897-89f 8ca-8e2 9fd-9fe a76 afa-aff b55 c04 c3c c77 c84 d00 d3b-d3c d81 eba ece 180f ' +
  '1885-1886 1abf-1add 1ae0-1aeb 1b4e-1b4f 1b7d-1b7f 1df6-1dfb 2e43-2e4f 2e52-2e5d a82c a8c5 a8ff a9bd ' +
  '105c9 105e4 10d24-10d27 10d69-10d6e 10eab-10ead 10ed0 10efa-10eff 10f46-10f50 10f55-10f59 ' +
  '10f82-10f89 11070 11073-11074 110c2 110cd 111cf 1123e 11241 1133b 11383 11385 1138e 11391 ' +
  '113bb-113c0 113c5 113c7-113c8 113ce 113d0 113d2 113d4-113d5 113d7-113d8 113e1-113e2 11438-1143f ' +
  '11442-11444 11446 1144b-1144f 1145a-1145b 1145d-1145e 11660-1166c 116b9 1182f-11837 11839-1183b ' +
  '11938 1193b-1193c 1193e 11943-11946 119d4-119d7 119da-119db 119e0 119e2 11a01-11a0a 11a33-11a38 ' +
  '11a3b-11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a9c 11a9e-11aa2 11b00-11b09 11b60 ' +
  '11b62-11b64 11b66 11be1 11c30-11c36 11c38-11c3d 11c3f 11c41-11c45 11c70-11c71 11c92-11ca7 ' +
  '11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 11d90-11d91 ' +
  '11d95 11d97 11ef3-11ef4 11ef7-11ef8 11f00-11f01 11f36-11f3a 11f40 11f42-11f4f 11f5a 11fff ' +
  '12ff1-12ff2 13430-13440 13447-13455 1611e-16129 1612d-1612f 16d68-16d6a 16d6d-16d6f 16e97-16e9a ' +
  '16f4f 16fe2 16fe4 1cf00-1cf2d 1cf30-1cf46 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 ' +
  '1e026-1e02a 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef 1e5ff 1e6e3 1e6e6 ' +
  '1e6ee-1e6ef 1e6f5 1e944-1e94a 1e95e-1e95f';

const later = new Set(
  laterCodePoints.split(' ').flatMap((range) => {
    const [first, last] = range.split('-').map((part) => Number.parseInt(part, 16));
    return Array.from({ length: (last ?? first!) - first! + 1 }, (_, i) => first! + i);
  }),
);
/** Nonspacing marks of Unicode 8: two more than now, and one fewer. */
const nonspacingMarks = /[[\p{Mn}\u1734\u{1171e}]--\u{111c9}]/gv;
/** Punctuation of Unicode 8 that is none now. */
const formerPunctuation = '\\u166d\\u{111c9}';

const control = /^[\p{Cc}\p{Cf}\p{Co}]$/u;
const space = /^\p{White_Space}$/u;
const mark = /^\p{M}$/u;
/** A text of characters that the normaliser replaces by one each. */
export const plainAscii = /^[\n\r\t -~]*$/;
const asciiWhiteSpace = /[\n\r\t]/g;
const punctuation = new RegExp(`^[\\p{P}!-\\/:-@\\[-\`{-~${formerPunctuation}]$`, 'u');

/**
 * NFD sorts each run of marks, in time quadratic in its length. So a combining grapheme joiner ends a run after so many marks (the
 * Stream-Safe Text Process, UAX #15 section 13). No language has longer runs. The joiner is itself a mark that is stripped.
 */
const marksMax = 30;
const graphemeJoiner = '\u034f';
/** Its combining class is 1, the lowest. NFD puts marks of higher classes behind it. */
const lowestMark = '\u0334';
const partCharacters = 4096;

/** The treatment of a character by the normaliser. 0 = not computed yet, here and below. */
const roles = { kept: 1, mark: 2, dropped: 3, space: 4, chinese: 5, later: 6, stripped: 7 } as const;
/** Whether a character separates words, is part of a word, or is a word by itself. */
const kinds = { between: 1, inWord: 2, alone: 3 } as const;
const kindsKnown = new Uint8Array(0x110000);

export interface BertNormalizer {
  (text: string): string;
  /** Yields the normalised text in parts. Each takes about 1 ms, whatever the text holds. */
  parts(text: string): Generator<string, void, undefined>;
}

export function bertNormalizer(options: BertNormalizerOptions): BertNormalizer {
  const rolesKnown = new Uint8Array(0x110000);

  /** Appends the normalised form of `text[from, to)` and returns `to`, a place where a part may end. */
  const normalizePart = (text: string, from: number, into: string[]): number => {
    const enough = from + partCharacters;
    const ascii = text.slice(from, enough);
    if (plainAscii.test(ascii)) {
      const cleaned = options.cleanText ? ascii.replace(asciiWhiteSpace, ' ') : ascii;
      into.push(options.lowercase ? cleaned.toLowerCase() : cleaned);
      return enough;
    }
    let run = '';
    let marks = 0;
    let at = from;
    for (let next = at; at < text.length; at = next) {
      const code = text.codePointAt(at)!;
      next = at + (code > 0xffff ? 2 : 1);
      const role = (rolesKnown[code] ||= roleOf(code, options));
      if (role === roles.mark && marks < marksMax) {
        marks += 1;
        continue;
      }
      // A part may end before this character, because NFD moves nothing over it, nor over the joiner that ends a run.
      const isLeftOut = role === roles.dropped || role === roles.stripped;
      if (at >= enough && !isLeftOut) break;
      if (role === roles.kept) {
        marks = 0;
        continue;
      }
      run += text.slice(from, at);
      from = next;
      if (isLeftOut) continue;
      marks = 0;
      if (role === roles.space) run += ' ';
      else if (role === roles.chinese) run += ` ${text.slice(at, next)} `;
      else if (role === roles.mark) {
        run += graphemeJoiner;
        from = at;
        marks = 1;
      } else {
        // A character of `later` stays as it is, between two runs that are decomposed.
        into.push(finished(run, options), text.slice(at, next));
        run = '';
      }
    }
    into.push(finished(run + text.slice(from, at), options));
    return at;
  };

  function* parts(text: string): Generator<string, void, undefined> {
    const part: string[] = [];
    for (let from = 0; from < text.length; part.length = 0) {
      from = normalizePart(text, from, part);
      yield part.join('');
    }
  }
  return Object.assign((text: string) => [...parts(text)].join(''), { parts });
}

/**
 * Calls `take` with the place of each word of `text[from, ...)`, a normalised text. Stops between two words at or after `enough`,
 * and returns that place.
 */
export function forEachBertWord(
  text: string,
  { from, enough }: { from: number; readonly enough: number },
  take: (from: number, to: number) => void,
): number {
  for (let at = from, next = 0; at < text.length; at = next) {
    const code = text.codePointAt(at)!;
    next = at + (code > 0xffff ? 2 : 1);
    const kind = (kindsKnown[code] ||= kindOf(code));
    if (kind === kinds.inWord) continue;
    if (from < at) take(from, at);
    if (kind === kinds.alone) take(at, next);
    from = next;
    if (next >= enough) return next;
  }
  if (from < text.length) take(from, text.length);
  return text.length;
}

/** The words of a normalised text. */
export function bertWords(text: string): string[] {
  const words: string[] = [];
  forEachBertWord(text, { from: 0, enough: text.length }, (from, to) => words.push(text.slice(from, to)));
  return words;
}

function roleOf(code: number, options: BertNormalizerOptions): number {
  const character = String.fromCodePoint(code);
  if (later.has(code)) return roles.later;
  if (options.cleanText && isDropped(character, code)) return roles.dropped;
  if (options.cleanText && isSpace(character, code)) return roles.space;
  if (options.chineseCharacters && isChinese(code)) return roles.chinese;
  if (!options.stripAccents || !mark.test(character)) return roles.kept;
  return isOnlyStripped(character) ? roles.stripped : roles.mark;
}

/** Whether a mark may be left out before NFD: it leaves nothing, and other marks may move over it (its combining class is not 0). */
function isOnlyStripped(character: string): boolean {
  const decomposed = character.normalize('NFD');
  const isReordered = (decomposed + lowestMark).normalize('NFD') === lowestMark + decomposed;
  return isReordered && decomposed.replace(nonspacingMarks, '') === '';
}

function kindOf(code: number): number {
  const character = String.fromCodePoint(code);
  if (later.has(code)) return kinds.inWord;
  if (space.test(character)) return kinds.between;
  return punctuation.test(character) ? kinds.alone : kinds.inWord;
}

function finished(run: string, options: BertNormalizerOptions): string {
  const stripped = options.stripAccents ? run.normalize('NFD').replace(nonspacingMarks, '') : run;
  // Each code point is lowercased by itself. `toLowerCase` gives a sigma at the end of a word another form.
  return options.lowercase ? stripped.replaceAll('Σ', 'σ').toLowerCase() : stripped;
}

function isDropped(character: string, code: number): boolean {
  if (code === 0x09 || code === 0x0a || code === 0x0d) return false;
  return code === 0 || code === 0xfffd || control.test(character);
}

function isSpace(character: string, code: number): boolean {
  return code === 0x09 || code === 0x0a || code === 0x0d || space.test(character);
}

/** The CJK Unified Ideographs blocks, as BERT lists them. */
function isChinese(code: number): boolean {
  return (
    (code >= 0x4e00 && code <= 0x9fff) ||
    (code >= 0x3400 && code <= 0x4dbf) ||
    (code >= 0x20000 && code <= 0x2a6df) ||
    (code >= 0x2a700 && code <= 0x2b73f) ||
    (code >= 0x2b740 && code <= 0x2b81f) ||
    (code >= 0x2b920 && code <= 0x2ceaf) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0x2f800 && code <= 0x2fa1f)
  );
}
