/**
 * The corpus of the search benchmark: token matrices of documents and queries. They are read or generated piece by piece,
 * because a million chunks do not fit in memory twice.
 */
import type { RowShape } from '../../src/contracts/row-shape.ts';

export interface Query {
  /** f32 [rows x dim], token weights folded in. */
  readonly vectors: Float32Array;
  readonly rows: number;
}

/** Token matrices of neighbouring chunks: value = component * scale. */
export interface TokenMatrices {
  /** As they are stored, `rowBytes` each: int8 [rows x dim], or rows of few bits. */
  readonly vectors: Int8Array;
  /** f16 bits [rows]. */
  readonly scales: Uint16Array;
  /** Ids of the vocabulary, u32 [rows]; absent where the vectors are of no text. */
  readonly tokenIds?: Uint32Array;
}

export interface Corpus extends RowShape {
  /** Names the source of the vectors in the report. */
  readonly description: string;
  /** Names the vectors: equal identities mean equal bytes. */
  readonly identity: string;
  /** First chunk of every document, and the number of chunks: [documents + 1]. */
  readonly documentChunks: Uint32Array;
  /** First row of every chunk, and the number of rows: [chunks + 1]. */
  readonly chunkRows: Float64Array;
  /** Mean that was taken from unit vectors, f32 [dim], rotated as rows of few bits are. */
  readonly centring: Float32Array;
  readonly queries: readonly Query[];
  /** Rows of whole documents `from` (inclusive) to `to` (exclusive). */
  read(from: number, to: number): TokenMatrices;
}

export function documentsOf(corpus: Corpus): number {
  return corpus.documentChunks.length - 1;
}

export function chunksOf(corpus: Corpus): number {
  return corpus.chunkRows.length - 1;
}

export function tokenVectorsOf(corpus: Corpus): number {
  return corpus.chunkRows.at(-1) ?? 0;
}

/** Row at which a document starts; `documents` is where the last one ends. */
export function rowOf(corpus: Corpus, document: number): number {
  return corpus.chunkRows[corpus.documentChunks[document]!]!;
}

/** Document of every chunk. */
export function documentOfChunks({ documentChunks }: Corpus): Uint32Array {
  const documents = new Uint32Array(documentChunks.at(-1) ?? 0);
  for (let document = 0; document + 1 < documentChunks.length; document++) {
    documents.fill(document, documentChunks[document], documentChunks[document + 1]);
  }
  return documents;
}

/** Rows of each chunk of a document. */
export function rowsOf(corpus: Corpus, document: number): Uint32Array {
  const first = corpus.documentChunks[document]!;
  return Uint32Array.from({ length: corpus.documentChunks[document + 1]! - first }, (_, chunk) =>
    rowsOfChunk(corpus, first + chunk),
  );
}

export function rowsOfChunk(corpus: Corpus, chunk: number): number {
  return corpus.chunkRows[chunk + 1]! - corpus.chunkRows[chunk]!;
}

/** Some of the queries, evenly spread. */
export function spread(queries: readonly Query[], wanted: number): readonly Query[] {
  const count = Math.min(wanted, queries.length);
  return Array.from({ length: count }, (_, i) => queries[Math.floor((i * queries.length) / count)]!);
}

/** Runs of whole documents of about so many rows, in order. */
export function* runsOf(corpus: Corpus, rowsMax: number): Generator<{ from: number; to: number }> {
  const documents = documentsOf(corpus);
  for (let from = 0; from < documents;) {
    let to = from + 1;
    while (to < documents && rowOf(corpus, to + 1) - rowOf(corpus, from) <= rowsMax) to++;
    yield { from, to };
    from = to;
  }
}

/** Documents up to the one that holds the `chunks`-th chunk. */
export function documentsHolding(documentChunks: Uint32Array, chunks: number): number {
  const found = documentChunks.findIndex((first) => first >= chunks);
  if (found < 0) {
    throw new Error(`there are ${documentChunks.at(-1) ?? 0} chunks, not ${chunks}`);
  }
  return found;
}

const halfCell = new Float16Array(1);
const halfBits = new Uint16Array(halfCell.buffer);

/** Writes one row as int8 with one scale that maps its largest component to 127; returns the scale's f16 bits. */
export function quantiseRow(row: Float32Array, into: Int8Array, offset: number): number {
  let largest = 1e-6;
  for (let d = 0; d < row.length; d++) {
    const size = Math.abs(row[d]!);
    if (size > largest) largest = size;
  }
  halfCell[0] = largest / 127;
  const factor = 1 / halfCell[0];
  for (let d = 0; d < row.length; d++) {
    // Away from zero at a half; within 127 but for the rounding of the scale.
    const value = row[d]! * factor;
    into[offset + d] = Math.max(-127, Math.min(127, value < 0 ? value - 0.5 : value + 0.5));
  }
  return halfBits[0]!;
}
