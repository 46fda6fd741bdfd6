/**
 * Cuts a long document into parts that are documents. A part ends before a heading of Markdown, else at the end of a
 * paragraph, else at the end of a sentence, else between words. Its id is `ID#1`, `ID#2` and so on, and its metadata say
 * where it comes from: `part_of`, `part` (from 1) and, below headings, `headings` (from the outermost).
 */
import { MaxsimdError } from '../errors.ts';
import type { Document, StoredDocument } from '../types.ts';
import { addedNames, assertFree, jsonBytes, metadataBytesMax, type AddedFields } from './metadata.ts';

interface CutOptions extends AddedFields {
  readonly cut?: boolean | number | undefined;
}

export interface Cutting {
  /** Bytes of UTF-8 that the text of a document has at most. */
  readonly bytes: number;
  /** The metadata field that keeps the text. */
  readonly keepText: string | undefined;
  /** Bytes that the metadata of a part have at most with its text, if a field keeps it. */
  readonly metadataBytes: number;
  /** All metadata fields that the import adds to a part. */
  readonly added: readonly string[];
}

const cutBytesMin = 1024;
const textBytesMax = 100 * 1024;
const docIdLengthMax = 255;
/** Code points of a heading in metadata. */
const headingLengthMax = 100;
/** Bytes of the longest `part` in metadata, beyond one digit. */
const partDigitsMax = 8;
/** Bytes of metadata that a part with its text leaves for its identifiers. Most texts of this size need no more. */
const identifiersBytes = 1024;

/** A heading of Markdown. */
interface Heading {
  /** The place where it begins. */
  readonly at: number;
  readonly level: number;
  /** The words of the headings that it stands below, from the outermost, and its own. */
  readonly path: readonly string[];
}

/** Places where a part may end, in ascending order. */
interface Boundaries {
  readonly headings: readonly Heading[];
  /** Headings, paragraphs and sentences. */
  readonly steps: readonly (readonly number[])[];
  readonly words: readonly number[];
}

/** Throws a `MaxsimdError` where `cut` is no number of bytes. */
export function cuttingOf({ cut = false, keepText, identifiers }: CutOptions): Cutting | undefined {
  if (cut === false) return undefined;
  const bytes = cut === true ? textBytesMax : cut;
  if (!Number.isInteger(bytes) || bytes < cutBytesMin || bytes > textBytesMax)
    throw new MaxsimdError(`cut: bytes of text from ${cutBytesMin} to ${textBytesMax}, or true`);
  const metadataBytes = metadataBytesMax - (identifiers === undefined ? 0 : identifiersBytes);
  const added = ['part_of', 'part', 'headings', ...addedNames({ keepText, identifiers })];
  return { bytes, keepText, metadataBytes, added };
}

/** The document itself if it is short enough, or the error that says why it cannot be cut. */
export function partsOf<Given extends Document>(
  document: Given,
  cutting: Cutting | undefined,
): readonly Given[] | MaxsimdError {
  if (cutting === undefined) return [document];
  try {
    return cutDocument(document, cutting);
  } catch (error) {
    if (error instanceof MaxsimdError) return error;
    throw error;
  }
}

function cutDocument<Given extends Document>(document: Given, cutting: Cutting): readonly Given[] {
  const { doc_id: docId, text } = document;
  if (typeof text !== 'string' || fits(document, text, cutting)) return [document];
  assertFree(document, cutting.added);
  const boundaries = boundariesOf(text);
  const parts: Given[] = [];
  for (let start = afterSpace(text, 0); start < text.length;) {
    const headings = headingsAt(boundaries, start);
    const metadata = {
      ...document.metadata,
      part_of: docId,
      part: parts.length + 1,
      ...(headings.length === 0 ? {} : { headings }),
    };
    const end = endOfPart(text, start, boundaries, roomOf(metadata, cutting));
    const part = `${docId}#${parts.length + 1}`;
    if (Array.from(part).length > docIdLengthMax)
      throw new MaxsimdError(`the id of a part has more than ${docIdLengthMax} characters`);
    parts.push({ ...document, doc_id: part, text: text.slice(start, end).trimEnd(), metadata });
    start = afterSpace(text, end);
  }
  // A text of spaces alone has no parts. The service refuses it.
  return parts.length === 0 ? [document] : parts;
}

/** The document that a stored one is a part of, and which part it is. Part 0 is a document that is no part. */
export function sourceOf(
  docId: string,
  { part_of: partOf, part }: NonNullable<Document['metadata']>,
): { readonly docId: string; readonly part: number } {
  const isPart = typeof part === 'number' && Number.isInteger(part) && part > 0;
  return isPart && typeof partOf === 'string' && docId === `${partOf}#${part}`
    ? { docId: partOf, part }
    : { docId, part: 0 };
}

function fits(document: Document, text: string, { bytes, keepText, metadataBytes }: Cutting): boolean {
  if (Buffer.byteLength(text) > bytes) return false;
  if (keepText === undefined) return true;
  return jsonBytes({ ...document.metadata, [keepText]: text }) <= metadataBytes;
}

/** Bytes that the text of a part may have: of its own, and as a string of JSON. */
interface Room {
  readonly bytes: number;
  readonly jsonBytes: number;
}

function roomOf(metadata: object, { bytes, keepText, metadataBytes }: Cutting): Room {
  if (keepText === undefined) return { bytes, jsonBytes: Infinity };
  const rest = metadataBytes - partDigitsMax - jsonBytes({ ...metadata, [keepText]: '' });
  if (rest < cutBytesMin)
    throw new MaxsimdError(
      `the other metadata leave ${Math.max(0, rest)} bytes for the text, and at least ${cutBytesMin} are needed`,
    );
  return { bytes, jsonBytes: rest };
}

/** Beyond the room only where one character is larger. */
function endOfPart(text: string, start: number, boundaries: Boundaries, room: Room): number {
  const { middle, furthest } = stretchOf(text, start, room);
  if (furthest === text.length) return furthest;
  // A part that ended before the middle would be small without need.
  for (const places of boundaries.steps) {
    const end = lastWithin(places, middle, furthest);
    if (end !== undefined) return end;
  }
  return lastWithin(boundaries.words, start, furthest) ?? furthest;
}

/** Where half of the room is used, and where all of it is. */
function stretchOf(
  text: string,
  start: number,
  room: Room,
): { readonly middle: number; readonly furthest: number } {
  let { bytes, jsonBytes: json } = room;
  let middle: number | undefined;
  let end = start;
  while (end < text.length) {
    const point = text.codePointAt(end)!;
    const size = utf8Bytes(point);
    bytes -= size;
    json -= escapedBytes(point, size);
    if ((bytes < 0 || json < 0) && end > start) break;
    if (2 * bytes < room.bytes || 2 * json < room.jsonBytes) middle ??= end;
    end += point > 0xff_ff ? 2 : 1;
  }
  return { middle: middle ?? start, furthest: end };
}

function utf8Bytes(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x8_00) return 2;
  return point < 0x1_00_00 ? 3 : 4;
}

/** In a string of JSON, as RFC 8259 (section 7) escapes it. */
function escapedBytes(point: number, size: number): number {
  if (point === 0x22 || point === 0x5c) return 2;
  if (point < 0x20) return '\b\f\n\r\t'.includes(String.fromCodePoint(point)) ? 2 : 6;
  return point >= 0xd8_00 && point <= 0xdf_ff ? 6 : size;
}

function boundariesOf(text: string): Boundaries {
  const headings = headingsOf(text);
  const [paragraphs, sentences, words] = [paragraph, sentence, word].map((pattern) =>
    Array.from(text.matchAll(pattern), (match) => match.index + match[0].length),
  ) as [number[], number[], number[]];
  return { headings, steps: [headings.map(({ at }) => at), paragraphs, sentences], words };
}

const paragraph = /\n[^\S\n]*\n\s*/gu;
const sentence =
  /[.!?\u{2026}]["')\]\u{201d}\u{2019}]*\s+|[\u{3002}\u{ff01}\u{ff1f}]["')\]\u{201d}\u{2019}\u{300d}]*|\n/gu;
const word = /\s+/gu;

/** CommonMark's ATX headings, outside of fenced code (https://spec.commonmark.org/0.31.2/#atx-headings). */
function headingsOf(text: string): readonly Heading[] {
  const headings: Heading[] = [];
  const above: Heading[] = [];
  let fence: string | undefined;
  for (const match of text.matchAll(/[^\n]+/gu)) {
    const line = match[0].trimEnd();
    const mark = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/u.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark?.startsWith(fence) === true && line.trim() === mark) fence = undefined;
      continue;
    }
    if (mark !== undefined) {
      fence = mark;
      continue;
    }
    const [, signs, words] = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/u.exec(line) ?? [];
    if (signs === undefined || words === undefined) continue;
    const plain = words.replace(/(?<![ \t])[ \t]+#+$/u, '');
    const short = Array.from(plain).slice(0, headingLengthMax).join('');
    const level = signs.length;
    while ((above.at(-1)?.level ?? 0) >= level) above.pop();
    const heading = { at: match.index, level, path: [...(above.at(-1)?.path ?? []), short] };
    above.push(heading);
    headings.push(heading);
  }
  return headings;
}

/** The headings that a place stands below, from the outermost. */
function headingsAt({ headings, steps: [places = []] }: Boundaries, place: number): readonly string[] {
  return headings[countUpTo(places, place) - 1]?.path ?? [];
}

/** The last one above `from` and at most `to`. */
function lastWithin(ascending: readonly number[], from: number, to: number): number | undefined {
  const last = ascending[countUpTo(ascending, to) - 1];
  return last !== undefined && last > from ? last : undefined;
}

/** How many are at most `most`. */
function countUpTo(ascending: readonly number[], most: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

function afterSpace(text: string, place: number): number {
  const rest = /\S/gu;
  rest.lastIndex = place;
  return rest.exec(text)?.index ?? text.length;
}

/**
 * Finds the documents that an import has left behind: parts of an earlier import that are no longer there, and documents
 * that were whole and are cut now. A document is left behind only if all parts of the present import are stored.
 */
export class StaleParts {
  /** Id of a document of the input -> number of its parts; 1 = whole. */
  readonly #parts = new Map<string, number>();

  add(docId: string, parts: number): void {
    this.#parts.set(docId, parts);
  }

  /** Not all of the document is stored. */
  drop(docId: string): void {
    this.#parts.delete(docId);
  }

  /** The ids, given all documents of the index. */
  async among(stored: AsyncIterable<StoredDocument>): Promise<readonly string[]> {
    const storedParts = new Map<string, number>();
    const candidates: { readonly docId: string; readonly source: string }[] = [];
    for await (const { doc_id: docId, metadata } of stored) {
      const source = sourceOf(docId, metadata);
      const parts = this.#parts.get(source.docId);
      if (parts === undefined) continue;
      const isPresent = parts === 1 ? source.part === 0 : source.part >= 1 && source.part <= parts;
      if (isPresent) storedParts.set(source.docId, (storedParts.get(source.docId) ?? 0) + 1);
      else if (!this.#parts.has(docId) || source.part === 0) candidates.push({ docId, source: source.docId });
    }
    return candidates
      .filter(({ source }) => storedParts.get(source) === this.#parts.get(source))
      .map(({ docId }) => docId);
  }
}
