/**
 * One document request in the scheduler. It makes its chunks lazily, receives their rows in any order, and writes the chunks of
 * each document in order, as parts of bounded size. While `bytesAheadMax` bytes of rows are taken and not yet written to the
 * client, it offers no chunks. So a slow client stops its own inference and holds a bounded amount of memory.
 */
import { assertInvariant } from '../../errors.ts';
import { type TokenWindow, tokenWindows } from '../model/chunker.ts';
import { type ColbertRules, documentSequence, windowTokensMax } from '../model/colbert-rules.ts';
import { type ChunkPlace, placeOfChunk } from '../model/row-spans.ts';
import type { TokenizedDocument } from '../model/tokenizer/document-tokenizer.ts';
import type { ChunkingParameters, EncodeTimings } from '../protocol/contract.ts';
import { rowsLeft } from '../../contracts/row-shape.ts';
import { packRowPlaces } from '../protocol/row-places.ts';
import { EncoderFailure } from './encoder-failure.ts';
import type { Entry, EntryRun, Job } from './scheduler.ts';
import type { BatchOutput } from '../inference/session-protocol.ts';

export interface DocumentPart {
  readonly documentIndex: number;
  readonly chunkRows: Uint32Array;
  /** Stored rows and f16 [rows] of each chunk. */
  readonly vectors: readonly Int8Array[];
  readonly scales: readonly Uint16Array[];
  /** How many tokens were run for the chunks, special tokens included. */
  readonly tokens: number;
  /** One a chunk, or none where they are unknown. */
  readonly places: readonly StoredPlace[];
  readonly last: boolean;
  /** The timings of the whole document, with its last part. */
  readonly timings: EncodeTimings | undefined;
  /** Why the document cannot be encoded. Set in its last part, which has no chunks then. */
  readonly problem?: Error;
}

export interface DocumentJobOptions {
  readonly modelIndex: number;
  readonly tenantId: string;
  readonly deadlineMs: number;
  readonly rules: ColbertRules;
  /** Bytes of a stored row, with its scale. */
  readonly rowBytes: number;
  /** One row is left of so many tokens. */
  readonly poolFactor: number;
  readonly chunking: ChunkingParameters;
  readonly documents: readonly TokenizedDocument[];
  readonly signal: AbortSignal;
  /** Writes a part. Resolves when the transport has taken it. */
  readonly write: (part: DocumentPart) => Promise<void>;
  /** Called when more entries may be taken. */
  readonly onRoom: () => void;
  /** Called with the tokens of each finished document. */
  readonly onDocument: (tokens: number) => void;
}

/** Where a chunk lies in its text, and the packed places of its rows. */
interface StoredPlace {
  readonly start: number;
  readonly end: number;
  readonly rows: Uint8Array;
}

interface Finished {
  readonly vectors: Int8Array;
  readonly scales: Uint16Array;
  readonly tokens: number;
  readonly place: StoredPlace | undefined;
}

/** A chunk that waits for its rows. */
interface OpenChunk {
  readonly document: OpenDocument;
  readonly chunk: number;
  readonly place: ChunkPlace | undefined;
}

interface OpenDocument {
  readonly index: number;
  readonly chunks: number;
  readonly finished: Map<number, Finished>;
  emitted: number;
  queueMs: number | undefined;
  runMs: number;
  rowsMs: number;
  refused: boolean;
}

/** So many bytes of rows may be taken and not yet written. */
const bytesAheadMax = 2 << 20;
/** A part is written when it has so many bytes, or when its document is complete. */
const partBytes = 256 << 10;

export class DocumentJob implements Job {
  readonly kind = 'document';
  readonly modelIndex: number;
  readonly tenantId: string;
  readonly deadlineMs: number;
  readonly isInternal = false;
  readonly #settled = Promise.withResolvers<void>();
  /** Settles when every part is written, or with the failure that ended the job. */
  readonly done = this.#settled.promise;
  readonly #options: DocumentJobOptions;
  readonly #source: Iterator<Entry, void>;
  readonly #open = new Map<number, OpenDocument>();
  readonly #places = new Map<number, OpenChunk>();
  readonly #startedAt = performance.now();
  #pending: Entry[] = [];
  #sourceEnded = false;
  /** Bytes of rows that are taken and not yet written, and how many of them the transport holds. */
  #bytesAhead = 0;
  #bytesWriting = 0;
  readonly #chunkBytesMax: number;
  #documentsLeft: number;
  #failed = false;

  constructor(options: DocumentJobOptions) {
    this.#options = options;
    this.modelIndex = options.modelIndex;
    this.tenantId = options.tenantId;
    this.deadlineMs = options.deadlineMs;
    this.#documentsLeft = options.documents.length;
    const { documentHead, tail } = options.rules;
    this.#chunkBytesMax = this.#bytesOfRows(documentHead.length + options.chunking.maxTokens + tail.length);
    this.#source = this.#entries();
    // A document without tokens has no entry and is finished at once.
    for (const [index, { ids }] of options.documents.entries()) {
      if (ids.length === 0) this.#emit(this.#openDocument(index, 0));
    }
  }

  get cancelled(): boolean {
    return this.#failed || this.#options.signal.aborted;
  }

  get exhausted(): boolean {
    return this.#pending.length === 0 && !this.#fill(1);
  }

  peek(offset: number): Entry | undefined {
    if (!this.#fill(offset + 1)) return undefined;
    // The oldest entry waits for the client only. Rows of later entries may wait for it, so it must not wait for them.
    if (offset === 0) return this.#bytesWriting < bytesAheadMax ? this.#pending[0] : undefined;
    return this.#bytesAhead + offset * this.#chunkBytesMax <= bytesAheadMax
      ? this.#pending[offset]
      : undefined;
  }

  take(entries: ReadonlySet<Entry>): void {
    this.#pending = this.#pending.filter((entry) => !entries.has(entry));
    for (const entry of entries) this.#bytesAhead += this.#bytesOf(entry);
  }

  drop(reason: 'cancelled' | 'expired'): void {
    this.fail(
      new EncoderFailure(
        reason === 'expired' ? 'deadline' : 'cancelled',
        `the documents were ${reason} in the queue`,
      ),
    );
  }

  fail(error: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#pending = [];
    this.#open.clear();
    this.#settled.reject(error);
  }

  deliver(entry: Entry, rows: BatchOutput, { startedAt, runMs, rowsMs }: EntryRun): void {
    assertInvariant(rows.kind === 'document', 'a document got query rows');
    if (this.#failed) return;
    const { document, chunk, place } = this.#placeOf(entry);
    if (document.refused) {
      this.#giveBack(entry);
      return;
    }
    document.finished.set(chunk, {
      vectors: rows.vectors,
      scales: rows.scales,
      tokens: entry.sequence.ids.length,
      place: place && { ...place, rows: packRowPlaces(place.start, place.tokens, rows) },
    });
    document.queueMs ??= Math.max(0, startedAt - this.#startedAt);
    document.runMs += runMs;
    document.rowsMs += rowsMs;
    this.#emit(document);
  }

  /** Ends the document of this entry. The other documents go on. */
  refuse(entry: Entry, problem: Error): void {
    if (this.#failed) return;
    const { document } = this.#placeOf(entry);
    this.#giveBack(entry);
    if (document.refused) return;
    document.refused = true;
    for (const { vectors, scales } of document.finished.values()) {
      this.#bytesAhead -= vectors.byteLength + scales.byteLength;
    }
    document.finished.clear();
    this.#pending = this.#pending.filter(({ position }) => {
      if (this.#places.get(position)?.document !== document) return true;
      this.#places.delete(position);
      return false;
    });
    void this.#send(document, [], 0, problem);
  }

  #placeOf({ position }: Entry): OpenChunk {
    const place = this.#places.get(position);
    assertInvariant(place !== undefined, 'an entry ends once');
    this.#places.delete(position);
    return place;
  }

  /** Frees the space of an entry whose rows will not be written. */
  #giveBack(entry: Entry): void {
    this.#bytesAhead -= this.#bytesOf(entry);
    this.#options.onRoom();
  }

  *#entries(): Generator<Entry, void, undefined> {
    const { documents, chunking, rules } = this.#options;
    let position = 0;
    for (const [index, { ids, places }] of documents.entries()) {
      if (ids.length === 0) continue;
      const windows: TokenWindow[] = [...tokenWindows(ids.length, chunking, windowTokensMax(rules))];
      const document = this.#openDocument(index, windows.length);
      for (const [chunk, window] of windows.entries()) {
        if (document.refused) break;
        const sequence = documentSequence(rules, ids.subarray(window.start, window.end));
        const place = places && placeOfChunk(rules, places, window, sequence);
        this.#places.set(position, { document, chunk, place });
        yield { sequence, position };
        position++;
      }
    }
  }

  #openDocument(index: number, chunks: number): OpenDocument {
    const document = {
      index,
      chunks,
      finished: new Map(),
      emitted: 0,
      queueMs: undefined,
      runMs: 0,
      rowsMs: 0,
      refused: false,
    };
    this.#open.set(index, document);
    return document;
  }

  #fill(count: number): boolean {
    while (this.#pending.length < count && !this.#sourceEnded && !this.#failed) {
      const next = this.#source.next();
      if (next.done === true) this.#sourceEnded = true;
      else this.#pending.push(next.value);
    }
    return this.#pending.length >= count;
  }

  #bytesOf(entry: Entry): number {
    return this.#bytesOfRows(entry.sequence.rows);
  }

  #bytesOfRows(tokens: number): number {
    return rowsLeft(tokens, this.#options) * this.#options.rowBytes;
  }

  /** Writes the chunks that are complete in order: full parts, and the last one when the document is complete. */
  #emit(document: OpenDocument): void {
    let bytes = 0;
    let ready: Finished[] = [];
    for (let chunk = document.emitted; document.finished.has(chunk); chunk++) {
      const finished = document.finished.get(chunk)!;
      ready.push(finished);
      bytes += finished.vectors.byteLength + finished.scales.byteLength;
      if (bytes < partBytes && chunk + 1 < document.chunks) continue;
      this.#write(document, ready, bytes);
      ready = [];
      bytes = 0;
    }
    if (document.chunks === 0) this.#write(document, [], 0);
  }

  #write(document: OpenDocument, ready: readonly Finished[], bytes: number): void {
    for (let i = 0; i < ready.length; i++) document.finished.delete(document.emitted + i);
    document.emitted += ready.length;
    void this.#send(document, ready, bytes);
  }

  async #send(
    document: OpenDocument,
    ready: readonly Finished[],
    bytes: number,
    problem?: Error,
  ): Promise<void> {
    const last = problem !== undefined || document.emitted === document.chunks;
    const { write, onRoom, onDocument, documents } = this.#options;
    const { ids, tokenizeMs } = documents[document.index]!;
    const { queueMs = 0, runMs, rowsMs } = document;
    if (last) {
      this.#open.delete(document.index);
      onDocument(ids.length);
    }
    this.#bytesWriting += bytes;
    try {
      await write({
        documentIndex: document.index,
        chunkRows: Uint32Array.from(ready, ({ scales }) => scales.length),
        vectors: ready.map(({ vectors }) => vectors),
        scales: ready.map(({ scales }) => scales),
        tokens: ready.reduce((sum, { tokens }) => sum + tokens, 0),
        places: ready.flatMap(({ place }) => place ?? []),
        last,
        timings: last ? { tokenizeMs, queueMs, runMs, rowsMs } : undefined,
        ...(problem === undefined ? {} : { problem }),
      });
    } catch (error) {
      this.fail(error as Error);
      return;
    }
    this.#bytesAhead -= bytes;
    this.#bytesWriting -= bytes;
    if (last && --this.#documentsLeft === 0) this.#settled.resolve();
    onRoom();
  }
}
