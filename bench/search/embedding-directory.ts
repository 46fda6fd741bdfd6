/**
 * Embeddings in a directory: raw little-endian files, so that any program can make one.
 *
 *   vectors.i8           int8 [token vectors x dim], row-major, chunk after chunk; or rows of few bits (native/kernels/rows.h)
 *   scales.f16           f16 [token vectors]; value = component * scale
 *   token_ids.u32        u32 [token vectors], of the vocabulary; may be missing
 *   chunk_rows.u32       u32 [chunks], rows of each chunk
 *   chunk_documents.u32  u32 [chunks], number of the document each chunk is of, ascending; without it each is one
 *   centring.f32         f32 [dim], the mean that was taken from unit vectors; without it none was
 *   queries.f32          f32 [query rows x dim], token weights folded in
 *   query_rows.u32       u32 [queries], rows of each query
 *   README               where they come from; its first line goes into the report
 *
 * dim = values of queries.f32 / rows of queries. The bits of a component follow from the bytes of a row.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Rotation } from '../../src/encoder/inference/rows.ts';
import { rowBytes, type RowShape } from '../../src/contracts/row-shape.ts';
import { documentsHolding, type Corpus, type Query, type TokenMatrices } from './corpus.ts';

const fileNames = {
  vectors: 'vectors.i8',
  scales: 'scales.f16',
  tokenIds: 'token_ids.u32',
  chunkRows: 'chunk_rows.u32',
  chunkDocuments: 'chunk_documents.u32',
  centring: 'centring.f32',
  queries: 'queries.f32',
  queryRows: 'query_rows.u32',
  readme: 'README',
} as const;

/** The first documents that hold `chunksMax` chunks; all when undefined. Files stay open as long as the process runs. */
export function openEmbeddings(directory: string, chunksMax: number | undefined): Corpus {
  const file = (name: keyof typeof fileNames): string => path.join(directory, fileNames[name]);
  const allRows = readU32(file('chunkRows'));
  const firstChunks = existsSync(file('chunkDocuments'))
    ? firstChunksOf(readU32(file('chunkDocuments')))
    : Uint32Array.from({ length: allRows.length + 1 }, (_, chunk) => chunk);
  if (firstChunks.at(-1) !== allRows.length) {
    throw new Error(`${directory}: documents of ${firstChunks.at(-1)} chunks, but ${allRows.length} chunks`);
  }
  const documents =
    chunksMax === undefined ? firstChunks.length - 1 : documentsHolding(firstChunks, chunksMax);
  const documentChunks = firstChunks.slice(0, documents + 1);
  const allStarts = starts(allRows);
  const rows = allStarts.at(-1) ?? 0;
  const bytes = statSync(file('vectors')).size;
  const [queryVectors, queryRows] = [readF32(file('queries')), readU32(file('queryRows'))];
  const shape = shapeOf(queryVectors.length / (starts(queryRows).at(-1) ?? 0), bytes / rows);
  if (shape === undefined || statSync(file('scales')).size !== rows * 2) {
    throw new Error(`${directory}: ${bytes} bytes of vectors do not fit ${rows} rows and their scales`);
  }
  const { dim } = shape;
  const stride = rowBytes(shape);
  const chunkRows = allStarts.slice(0, (documentChunks.at(-1) ?? 0) + 1);
  const descriptors = { vectors: openSync(file('vectors'), 'r'), scales: openSync(file('scales'), 'r') };
  const centring = existsSync(file('centring')) ? readF32(file('centring')) : new Float32Array(dim);
  if (shape.rowBits < 8) new Rotation(dim).apply(centring);
  const tokenIds = existsSync(file('tokenIds')) ? readU32(file('tokenIds')) : undefined;
  if (tokenIds !== undefined && tokenIds.length !== rows)
    throw new Error(`${directory}: ${tokenIds.length} token ids of ${rows} rows`);
  return {
    description: existsSync(file('readme'))
      ? (readFileSync(file('readme'), 'utf8').split('\n', 1)[0] ?? '')
      : path.basename(directory),
    identity: `${path.resolve(directory)} ${bytes} ${statSync(file('vectors')).mtimeMs} ${documents}`,
    ...shape,
    documentChunks,
    chunkRows,
    centring,
    queries: queriesOf(queryVectors, queryRows, dim),
    read: (from, to) => {
      const first = chunkRows[documentChunks[from]!]!;
      const count = chunkRows[documentChunks[to]!]! - first;
      const vectors = readAt(descriptors.vectors, first * stride, count * stride);
      const scales = readAt(descriptors.scales, first * 2, count * 2);
      return {
        vectors: new Int8Array(vectors),
        scales: new Uint16Array(scales),
        ...(tokenIds && { tokenIds: tokenIds.subarray(first, first + count) }),
      };
    },
  };
}

/** Appends to the files of a directory document by document. */
export class EmbeddingWriter {
  readonly #directory: string;
  readonly #vectors: number;
  readonly #scales: number;
  readonly #tokenIds: Uint32Array[] = [];
  readonly #chunkRows: number[] = [];
  readonly #chunkDocuments: number[] = [];
  #documents = 0;

  constructor(directory: string) {
    this.#directory = directory;
    this.#vectors = openSync(path.join(directory, fileNames.vectors), 'w');
    this.#scales = openSync(path.join(directory, fileNames.scales), 'w');
  }

  get chunks(): number {
    return this.#chunkRows.length;
  }

  document(chunkRows: Iterable<number>, { vectors, scales, tokenIds }: TokenMatrices): void {
    for (const rows of chunkRows) {
      this.#chunkRows.push(rows);
      this.#chunkDocuments.push(this.#documents);
    }
    this.#documents += 1;
    writeFileSync(this.#vectors, vectors);
    writeFileSync(this.#scales, scales);
    if (tokenIds !== undefined) this.#tokenIds.push(tokenIds);
  }

  /** Writes what belongs to all and closes the files. */
  finish(
    queries: readonly Query[],
    { centring, readme }: { readonly centring: Float32Array; readonly readme: string },
  ): void {
    closeSync(this.#vectors);
    closeSync(this.#scales);
    const write = (name: keyof typeof fileNames, data: Uint8Array | Uint32Array | Float32Array): void =>
      writeFileSync(path.join(this.#directory, fileNames[name]), data);
    write('chunkRows', Uint32Array.from(this.#chunkRows));
    write('chunkDocuments', Uint32Array.from(this.#chunkDocuments));
    write('centring', centring);
    if (this.#tokenIds.length > 0)
      write('tokenIds', Uint32Array.from(this.#tokenIds.flatMap((ids) => [...ids])));
    write(
      'queryRows',
      Uint32Array.from(queries, ({ rows }) => rows),
    );
    write('queries', Float32Array.from(queries.flatMap(({ vectors }) => [...vectors])));
    write('readme', Buffer.from(readme));
  }
}

/** Undefined when no row of `dim` components takes so many bytes. */
function shapeOf(dim: number, bytes: number): RowShape | undefined {
  const shapes = [8, 4, 2, 1].map((rowBits) => ({ dim, rowBits }));
  return Number.isInteger(dim) ? shapes.find((shape) => rowBytes(shape) === bytes) : undefined;
}

/** First chunk of each document, and the number of chunks. */
function firstChunksOf(chunkDocuments: Uint32Array): Uint32Array {
  const first: number[] = [];
  for (const [chunk, document] of chunkDocuments.entries()) {
    if (chunk === 0 || document !== chunkDocuments[chunk - 1]) first.push(chunk);
  }
  return Uint32Array.from([...first, chunkDocuments.length]);
}

function queriesOf(vectors: Float32Array, rows: Uint32Array, dim: number): readonly Query[] {
  const bounds = starts(rows);
  if ((bounds.at(-1) ?? 0) * dim !== vectors.length) throw new Error('query rows do not fit the queries');
  return Array.from(rows, (count, query) => ({
    rows: count,
    vectors: vectors.slice(bounds[query]! * dim, bounds[query + 1]! * dim),
  }));
}

function starts(counts: Uint32Array): Float64Array {
  const result = new Float64Array(counts.length + 1);
  for (const [at, count] of counts.entries()) result[at + 1] = result[at]! + count;
  return result;
}

function readU32(file: string): Uint32Array {
  return new Uint32Array(bytesOf(file));
}

function readF32(file: string): Float32Array {
  return new Float32Array(bytesOf(file));
}

function bytesOf(file: string): ArrayBuffer {
  return new Uint8Array(readFileSync(file)).buffer;
}

function readAt(descriptor: number, position: number, length: number): ArrayBuffer {
  const bytes = new Uint8Array(length);
  for (let done = 0; done < length;) {
    const read = readSync(descriptor, bytes, done, Math.min(length - done, 2 ** 30), position + done);
    if (read === 0) throw new Error('a file of the embeddings ends too early');
    done += read;
  }
  return bytes.buffer;
}
