/**
 * Decodes and checks the replies of encoders. A reply with wrong sizes, unknown positions or values that are no numbers is a
 * `CorruptReply`. Then the request fails, so that no score is computed from it.
 */
import { rowBytes, type RowShape } from '../../row-shape.ts';
import type {
  EncodedDocument,
  EncodedQuery,
  EncoderModel,
  EncodeTimings,
  TokenSpans,
} from '../protocol/contract.ts';
import { areFinite } from '../protocol/finite.ts';
import { rangeFields } from '../protocol/row-places.ts';
import {
  alignedCopy,
  type EncodeQueryResponse,
  type GetInfoResponse,
  type LocateTokensResponse,
  type PartMessage,
} from '../protocol/wire.ts';

export class CorruptReply extends Error {
  override readonly name = 'CorruptReply';
}

/** A bound on the rows of a chunk. No model has more positions. */
const chunkRowsMax = 1 << 16;

export function decodeInfo(info: GetInfoResponse): EncoderModel[] {
  return info.models.map(({ name, version, dim, rowBits: sent, windowTokensMax }) => {
    // An encoder of an earlier release sends none.
    const rowBits = sent === 0 ? 8 : sent;
    ensure(name !== '' && version !== '' && dim >= 1 && windowTokensMax >= 1, 'model information');
    ensure([1, 2, 4, 8].includes(rowBits), 'model information');
    return { name, version, dim, rowBits, windowTokensMax };
  });
}

export function decodeCounts(bytes: Uint8Array, count: number): Uint32Array {
  const copy = alignedCopy(bytes, 4);
  ensure(copy !== undefined && copy.byteLength === count * 4, 'token counts');
  return new Uint32Array(copy);
}

export function decodeSpans(reply: LocateTokensResponse): TokenSpans {
  const [starts, ends] = [reply.starts, reply.ends].map((bytes) => alignedCopy(bytes, 4));
  ensure(starts !== undefined && ends?.byteLength === starts.byteLength, 'token spans');
  const spans = { starts: new Uint32Array(starts), ends: new Uint32Array(ends) };
  return reply.problem === '' ? spans : { ...spans, problem: reply.problem };
}

export function decodeQuery(reply: EncodeQueryResponse, dim: number): EncodedQuery {
  const { inputTokens, rows, problem } = reply;
  if (problem !== '') return refusedQuery(problem);
  ensure(rows >= 1 && rows <= chunkRowsMax, 'query rows');
  return {
    inputTokens,
    rows,
    vectors: floats(reply.vectors, rows * dim, 'query vectors'),
    offsets: floats(reply.offsets, rows, 'query offsets'),
    timings: timingsOf(reply.timings),
  };
}

/** The result for a query that cannot be encoded. */
export function refusedQuery(problem: string): EncodedQuery {
  return {
    problem,
    inputTokens: 0,
    rows: 0,
    vectors: new Float32Array(),
    offsets: new Float32Array(),
    timings: timingsOf(null),
  };
}

interface Part {
  readonly chunkRows: Uint32Array;
  readonly vectors: Uint8Array;
  readonly scales: Uint16Array;
  /** Empty where it is unknown. */
  readonly chunkRanges: Uint32Array;
  readonly rowPlaces: Uint8Array;
}

/** Collects the parts of documents until they are whole. */
export class DocumentCollector {
  readonly #rowBytes: number;
  readonly #inputTokens: readonly number[];
  readonly #unknownTokens: Uint32Array | undefined;
  readonly #parts = new Map<number, Part[]>();
  readonly #complete = new Set<number>();

  /** Tokens of each document of the call, and how many of them are unknown. Some encoders do not count those. */
  constructor(shape: RowShape, inputTokens: readonly number[], unknownTokens?: Uint32Array) {
    this.#rowBytes = rowBytes(shape);
    this.#unknownTokens = unknownTokens;
    this.#inputTokens = inputTokens;
  }

  /** Whether every document came. */
  get complete(): boolean {
    return this.#complete.size === this.#inputTokens.length;
  }

  /** Tokens that were run of documents that are not complete yet. */
  get tokensInPart(): number {
    let tokens = 0;
    for (const [documentIndex, parts] of this.#parts) {
      const rows = parts.reduce((sum, { scales }) => sum + scales.length, 0);
      // Chunks overlap and have special tokens, so there may be more rows than tokens of the text.
      tokens += Math.min(rows, this.#inputTokens[documentIndex]!);
    }
    return tokens;
  }

  /** Takes a part. Returns the document when it was its last one. */
  add(message: PartMessage): EncodedDocument | undefined {
    const { documentIndex, last, problem } = message;
    ensure(documentIndex < this.#inputTokens.length && !this.#complete.has(documentIndex), 'document index');
    const parts = this.#parts.get(documentIndex) ?? [];
    parts.push(decodePart(message, this.#rowBytes));
    if (!last) {
      this.#parts.set(documentIndex, parts);
      return undefined;
    }
    this.#parts.delete(documentIndex);
    this.#complete.add(documentIndex);
    const inputTokens = this.#inputTokens[documentIndex]!;
    if (problem !== '') return refusedDocument({ documentIndex, inputTokens, problem });
    const document = joined(parts);
    ensure((inputTokens === 0) === (document.chunkRows.length === 0), 'number of chunks');
    const unknownTokens = this.#unknownTokens?.[documentIndex];
    return {
      documentIndex,
      inputTokens,
      ...(unknownTokens === undefined ? {} : { unknownTokens }),
      ...document,
      timings: timingsOf(message.timings),
    };
  }
}

/** The result for a document that cannot be encoded. */
export function refusedDocument(
  document: Required<Pick<EncodedDocument, 'documentIndex' | 'inputTokens' | 'problem'>>,
): EncodedDocument {
  return { ...document, ...joined([]), timings: timingsOf(null) };
}

function decodePart(message: PartMessage, bytes: number): Part {
  const rowCounts = alignedCopy(message.chunkRows, 4);
  const scaleBits = alignedCopy(message.scales, 2);
  ensure(rowCounts !== undefined && scaleBits !== undefined, 'part size');
  const chunkRows = new Uint32Array(rowCounts);
  const scales = new Uint16Array(scaleBits);
  let rows = 0;
  for (const count of chunkRows) {
    ensure(count >= 1 && count <= chunkRowsMax, 'chunk rows');
    rows += count;
  }
  ensure(scales.length === rows && message.vectors.length === rows * bytes, 'part size');
  // Larger bits are halves that are negative, infinite or no numbers.
  for (const bits of scales) ensure(bits < 0x7c00, 'scale');
  return { chunkRows, vectors: message.vectors, scales, ...decodePlaces(message, chunkRows.length) };
}

function decodePlaces(message: PartMessage, chunks: number): Pick<Part, 'chunkRanges' | 'rowPlaces'> {
  const bytes = alignedCopy(message.chunkRanges, 4);
  ensure(bytes !== undefined, 'range');
  const chunkRanges = new Uint32Array(bytes);
  ensure(chunkRanges.length === 0 || chunkRanges.length === chunks * rangeFields, 'range');
  let placeBytes = 0;
  for (let at = 0; at < chunkRanges.length; at += rangeFields) {
    const [start, end, length] = chunkRanges.subarray(at, at + rangeFields) as unknown as [
      number,
      number,
      number,
    ];
    ensure(start < end, 'range');
    placeBytes += length;
  }
  ensure(message.rowPlaces.length === placeBytes, 'range');
  return { chunkRanges, rowPlaces: message.rowPlaces };
}

function joined(
  parts: readonly Part[],
): Pick<EncodedDocument, 'chunkRows' | 'vectors' | 'scales' | 'chunkRanges' | 'rowPlaces'> {
  const total = (length: (part: Part) => number): number =>
    parts.reduce((sum, part) => sum + length(part), 0);
  const chunkRows = new Uint32Array(total((part) => part.chunkRows.length));
  const vectors = new Int8Array(total((part) => part.vectors.length));
  const scales = new Uint16Array(total((part) => part.scales.length));
  const chunkRanges = new Uint32Array(total((part) => part.chunkRanges.length));
  const rowPlaces = new Uint8Array(total((part) => part.rowPlaces.length));
  let chunk = 0;
  let byte = 0;
  let row = 0;
  let range = 0;
  let place = 0;
  for (const part of parts) {
    chunkRows.set(part.chunkRows, chunk);
    vectors.set(new Int8Array(part.vectors.buffer, part.vectors.byteOffset, part.vectors.length), byte);
    scales.set(part.scales, row);
    chunkRanges.set(part.chunkRanges, range);
    rowPlaces.set(part.rowPlaces, place);
    chunk += part.chunkRows.length;
    byte += part.vectors.length;
    row += part.scales.length;
    range += part.chunkRanges.length;
    place += part.rowPlaces.length;
  }
  const isLocated = chunkRanges.length > 0 && chunkRanges.length === chunkRows.length * rangeFields;
  return { chunkRows, vectors, scales, ...(isLocated ? { chunkRanges, rowPlaces } : {}) };
}

function floats(bytes: Uint8Array, count: number, what: string): Float32Array {
  const copy = alignedCopy(bytes, 4);
  ensure(copy !== undefined && copy.byteLength === count * 4, what);
  const values = new Float32Array(copy);
  ensure(areFinite(values), what);
  return values;
}

function timingsOf(timings: EncodeTimings | null): EncodeTimings {
  const { tokenizeMs, queueMs, runMs } = timings ?? { tokenizeMs: 0, queueMs: 0, runMs: 0 };
  return { tokenizeMs, queueMs, runMs };
}

function ensure(condition: boolean, what: string): asserts condition {
  if (!condition) throw new CorruptReply(`the encoder's reply has a wrong ${what}`);
}
