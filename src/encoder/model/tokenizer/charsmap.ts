/**
 * The table by which a SentencePiece tokenizer replaces characters, `precompiled_charsmap` in tokenizer.json. In base64:
 *
 *   u32          bytes of the array
 *   u32 [units]  a double array over the UTF-8 bytes of the texts that are replaced
 *   bytes        the replacements in UTF-8, a zero byte behind each
 *
 * Numbers are little-endian. A unit has the label (the byte that leads to it) in bits 0 to 7, whether a text ends there in bit 8,
 * and in bits 10 to 30 an offset, which bit 9 shifts by eight. The child by byte `b` is `unit ^ offset ^ b`. Where a text ends,
 * child 0 holds the place of its replacement in bits 0 to 30, and bit 31 is set. So the format is that of Darts-clone, which
 * SentencePiece uses (`normalizer.cc`).
 */

/** More and longer texts mean that the array is damaged: it may lead in a circle. */
const entriesMax = 1 << 20;
const textBytesMax = 256;

const endFlag = 1 << 8;
const shiftFlag = 1 << 9;
const labelMask = 0x8000_00ff;
const placeMask = 0x7fff_ffff;

/** Text -> its replacement. Throws an Error where the table is damaged. */
export function charsmapEntries(base64: string): Map<string, string> {
  const bytes = Buffer.from(base64, 'base64');
  const arrayBytes = bytes.length < 4 ? -1 : bytes.readUInt32LE(0);
  if (arrayBytes < 4 || arrayBytes % 4 !== 0 || 4 + arrayBytes > bytes.length) throw damaged();
  const units = new Uint32Array(arrayBytes / 4);
  for (let unit = 0; unit < units.length; unit++) units[unit] = bytes.readUInt32LE(4 + 4 * unit);
  const replacements = bytes.subarray(4 + arrayBytes);
  const entries = new Map<string, string>();
  for (const { text, place } of textsOf(units)) {
    const end = replacements.indexOf(0, place);
    if (end === -1 || entries.size === entriesMax) throw damaged();
    entries.set(decoded(text), decoded(replacements.subarray(place, end)));
  }
  return entries;
}

/** Every text of the array with the place of its replacement. */
function* textsOf(units: Uint32Array): Generator<{ readonly text: Uint8Array; readonly place: number }> {
  const pending: { readonly node: number; readonly text: readonly number[] }[] = [{ node: 0, text: [] }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, text } = next;
    const unit = units[node]!;
    const children = node ^ offsetOf(unit);
    if (text.length > textBytesMax || pending.length > entriesMax) throw damaged();
    if ((unit & endFlag) !== 0) {
      const end = units[children];
      if (end === undefined) throw damaged();
      yield { text: Uint8Array.from(text), place: end & placeMask };
    }
    const [first, last] = followingBytes(text);
    for (let byte = first; byte <= last; byte++) {
      const child = children ^ byte;
      if (child < units.length && (units[child]! & labelMask) >>> 0 === byte) {
        pending.push({ node: child, text: [...text, byte] });
      }
    }
  }
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & shiftFlag) === 0 ? 0 : 8);
}

/** The first and last byte that may follow in UTF-8. Within a character only 64 may. */
function followingBytes(text: readonly number[]): readonly [number, number] {
  let behind = 0;
  while (behind < text.length && (text[text.length - 1 - behind]! & 0xc0) === 0x80) behind++;
  const lead = text[text.length - 1 - behind] ?? 0;
  const length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return behind + 1 < length ? [0x80, 0xbf] : [1, 0xff];
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw damaged(error);
  }
}

function damaged(cause?: unknown): Error {
  return new Error('precompiled_charsmap is damaged', { cause });
}
