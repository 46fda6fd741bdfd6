/**
 * Decodes and checks the replies of encoders. A reply with wrong sizes, unknown positions or values that are no numbers is a
 * `CorruptReply`. Then the request fails, so that no score is computed from it.
 */
import { rowBytes, type RowShape } from '../../contracts/row-shape.ts';
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
  type EncodeQueryResponse,
  type GetInfoResponse,
  type LocateTokensResponse,
  numbersIn,
  type PartMessage,
} from '../protocol/wire.ts';

export class CorruptReply extends Error {
  override readonly name = 'CorruptReply';
}

/** A bound on the rows of a chunk. No model has more positions. */
const chunkRowsMax = 1 << 16;

export function decodeInfo(info: GetInfoResponse): EncoderModel[] {
  return info.models.map(
    ({ name, version, dim, rowBits: sentBits, poolFactor: sentFactor, windowTokensMax }) => {
      // An encoder of an earlier release sends neither.
      const rowBits = sentBits === 0 ? 8 : sentBits;
      const poolFactor = sentFactor === 0 ? 1 : sentFactor;
      ensure(name !== '' && version !== '' && dim >= 1 && windowTokensMax >= 1, 'model information');
      ensure([1, 2, 4, 8].includes(rowBits), 'model information');
      return { name, version, dim, rowBits, poolFactor, windowTokensMax };
    },
  );
}

export function decodeCounts(bytes: Uint8Array, count: number): Uint32Array {
  const counts = numbersIn(bytes, Uint32Array);
  ensure(counts?.length === count, 'token counts');
  return counts;
}

export function decodeSpans(reply: Pick<LocateTokensResponse, 'starts' | 'ends' | 'problem'>): TokenSpans {
  const [starts, ends] = [reply.starts, reply.ends].map((bytes) => numbersIn(bytes, Uint32Array));
  ensure(starts !== undefined && ends?.length === starts.length, 'token spans');
  const spans = { starts, ends };
  return reply.problem === '' ? spans : { ...spans, problem: reply.problem };
}

export function decodeQuery(reply: EncodeQueryResponse, dim: number): EncodedQuery {
  const { inputTokens, rows, problem } = reply;
  if (problem !== '') return refusedQuery(problem);
  ensure(rows >= 1 && rows <= chunkRowsMax, 'query rows');
  const spans = decodeSpans(reply);
  ensure([0, rows].includes(spans.starts.length), 'query spans');
  return {
    inputTokens,
    rows,
    vectors: floats(reply.vectors, rows * dim, 'query vectors'),
    offsets: floats(reply.offsets, rows, 'query offsets'),
    ...(spans.starts.length === 0 ? {} : { spans }),
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
  readonly vectors: Int8Array;
  readonly scales: Uint16Array;
  /** How many tokens were run for its chunks. */
  readonly tokens: number;
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
      const run = parts.reduce((sum, part) => sum + part.tokens, 0);
      // Chunks overlap and have special tokens, so there may be more of them than tokens of the text.
      tokens += Math.min(run, this.#inputTokens[documentIndex]!);
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
  const chunkRows = numbersIn(message.chunkRows, Uint32Array);
  const scales = numbersIn(message.scales, Uint16Array);
  ensure(chunkRows !== undefined && scales !== undefined, 'part size');
  let rows = 0;
  for (const count of chunkRows) {
    ensure(count >= 1 && count <= chunkRowsMax, 'chunk rows');
    rows += count;
  }
  ensure(scales.length === rows && message.vectors.length === rows * bytes, 'part size');
  // Larger bits are halves that are negative, infinite or no numbers.
  for (const bits of scales) ensure(bits < 0x7c00, 'scale');
  const vectors = new Int8Array(message.vectors.buffer, message.vectors.byteOffset, message.vectors.length);
  // An encoder of an earlier release sends none: each of its rows is of one token.
  const tokens = message.tokens === 0 ? rows : message.tokens;
  return { chunkRows, vectors, scales, tokens, ...decodePlaces(message, chunkRows.length) };
}

function decodePlaces(message: PartMessage, chunks: number): Pick<Part, 'chunkRanges' | 'rowPlaces'> {
  const chunkRanges = numbersIn(message.chunkRanges, Uint32Array);
  ensure(chunkRanges !== undefined, 'range');
  ensure(chunkRanges.length === 0 || chunkRanges.length === chunks * rangeFields, 'range');
  let placeBytes = 0;
  for (let at = 0; at < chunkRanges.length; at += rangeFields) {
    ensure(chunkRanges[at]! < chunkRanges[at + 1]!, 'range');
    placeBytes += chunkRanges[at + 2]!;
  }
  ensure(message.rowPlaces.length === placeBytes, 'range');
  return { chunkRanges, rowPlaces: message.rowPlaces };
}

/** The parts as one. A document of one part is not copied. */
function joined(
  parts: readonly Part[],
): Pick<EncodedDocument, 'chunkRows' | 'vectors' | 'scales' | 'chunkRanges' | 'rowPlaces'> {
  const chunkRows = concatenated(parts, 'chunkRows', Uint32Array);
  const chunkRanges = concatenated(parts, 'chunkRanges', Uint32Array);
  const isLocated = chunkRanges.length > 0 && chunkRanges.length === chunkRows.length * rangeFields;
  return {
    chunkRows,
    vectors: concatenated(parts, 'vectors', Int8Array),
    scales: concatenated(parts, 'scales', Uint16Array),
    ...(isLocated ? { chunkRanges, rowPlaces: concatenated(parts, 'rowPlaces', Uint8Array) } : {}),
  };
}

function concatenated<Name extends Exclude<keyof Part, 'tokens'>>(
  parts: readonly Part[],
  name: Name,
  Kind: new (length: number) => Part[Name],
): Part[Name] {
  if (parts.length === 1) return parts[0]![name];
  const whole = new Kind(parts.reduce((sum, part) => sum + part[name].length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part[name], at);
    at += part[name].length;
  }
  return whole;
}

function floats(bytes: Uint8Array, count: number, what: string): Float32Array {
  const values = numbersIn(bytes, Float32Array);
  ensure(values?.length === count && areFinite(values), what);
  return values;
}

const noTimings: EncodeTimings = { tokenizeMs: 0, queueMs: 0, runMs: 0, rowsMs: 0 };

function timingsOf(timings: EncodeTimings | null): EncodeTimings {
  const { tokenizeMs, queueMs, runMs, rowsMs } = timings ?? noTimings;
  return { tokenizeMs, queueMs, runMs, rowsMs };
}

function ensure(condition: boolean, what: string): asserts condition {
  if (!condition) throw new CorruptReply(`the encoder's reply has a wrong ${what}`);
}
