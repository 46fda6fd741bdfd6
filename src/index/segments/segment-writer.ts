/**
 * Writes new records to one active segment. The segment is made when the first record comes and retired when it is full
 * or a write fails. It is sealed in the background once no upsert in flight has records in it.
 *
 * A segment's file exists before the catalog names it. A crash between the two leaves a file that nothing refers to. The
 * next open removes it.
 */
import { assertInvariant } from '../../errors.ts';
import type { RecordLocation } from '../../contracts/index-state.ts';
import { fromEngine, hasEngineCode, throughEngine } from '../engine/engine-errors.ts';
import type { NativeRecord } from '../engine/native.ts';
import { newSegment, segmentBlob, type Segment, type SegmentDeps } from './segment.ts';

export interface SegmentWriterDeps extends SegmentDeps {
  /** Called with a retired segment when no upsert writes to it any more. */
  readonly onRetired: (segment: Segment) => void;
}

export class SegmentWriter {
  readonly #deps: SegmentWriterDeps;
  #active: Promise<Segment> | undefined;

  constructor(deps: SegmentWriterDeps) {
    this.#deps = deps;
  }

  /** Goes on with a segment that was active when the index was last closed. */
  resume(segment: Segment): void {
    assertInvariant(this.#active === undefined && segment.state === 'active', 'one active segment');
    this.#active = Promise.resolve(segment);
    this.#retireIfFull(segment);
  }

  begin(): WriteSession {
    return new WriteSession(this, this.#deps);
  }

  /** The active segment. It may have been retired by the time the caller goes on. */
  active(): Promise<Segment> {
    this.#active ??= this.#createActive();
    return this.#active;
  }

  /** Makes a segment, in the engine and in the catalog. The caller decides what goes there. */
  async create(): Promise<Segment> {
    const { indexId, native, blobs, catalog, segments } = this.#deps;
    const id = await catalog.allocateSegmentId();
    const blob = segmentBlob(indexId, id);
    // After a failure the catalog may have the segment. So the file stays until an open finds that nothing refers to it.
    await throughEngine(async () => {
      await native.createSegment(id, await blobs.create(blob));
      await catalog.createSegment({ id, blob });
    });
    const segment = newSegment(id, blob);
    segments.set(id, segment);
    return segment;
  }

  retire(segment: Segment): void {
    if (segment.state !== 'active') return;
    segment.state = 'retired';
    this.#active = undefined;
    if (segment.writers === 0) this.#deps.onRetired(segment);
  }

  added(segment: Segment, { scales, terms }: NativeRecord): void {
    segment.tokenVectors += scales.length;
    segment.termBytes += terms.length;
    this.#retireIfFull(segment);
  }

  failed(segment: Segment): void {
    segment.unwritable = true;
    this.retire(segment);
  }

  left(segment: Segment): void {
    segment.writers -= 1;
    if (segment.writers === 0 && segment.state === 'retired') this.#deps.onRetired(segment);
  }

  #retireIfFull(segment: Segment): void {
    const { segmentTokenVectorsMax, segmentTermBytesMax } = this.#deps.settings;
    const isFull = segment.tokenVectors >= segmentTokenVectorsMax || segment.termBytes >= segmentTermBytesMax;
    if (isFull) this.retire(segment);
  }

  async #createActive(): Promise<Segment> {
    try {
      return await this.create();
    } catch (error) {
      this.#active = undefined;
      throw error;
    }
  }
}

/** The records of one upsert, in one or more segments. The caller must call `end`, whatever happened. */
export class WriteSession {
  readonly #writer: SegmentWriter;
  readonly #deps: SegmentWriterDeps;
  readonly #segments = new Set<Segment>();
  #committed = false;

  constructor(writer: SegmentWriter, deps: SegmentWriterDeps) {
    this.#writer = writer;
    this.#deps = deps;
  }

  /** Writes one record, which is neither durable nor visible yet. */
  async append(record: NativeRecord): Promise<RecordLocation> {
    const segment = await this.#join();
    try {
      const appended = await this.#deps.native.append(segment.id, record);
      this.#writer.added(segment, record);
      return { segmentId: segment.id, record: appended.record };
    } catch (error) {
      // For want of space nothing was written, and space may come back. After a failed write the file takes no more.
      if (hasEngineCode(error, 'io')) this.#writer.failed(segment);
      throw fromEngine(error);
    }
  }

  async sync(): Promise<void> {
    const syncs = [...this.#segments].map((segment) =>
      this.#deps.native.sync(segment.id).catch((error: unknown) => {
        this.#writer.failed(segment);
        throw fromEngine(error);
      }),
    );
    // None is left running when another has failed.
    await Promise.allSettled(syncs);
    await Promise.all(syncs);
  }

  /** The active segment, which is not sealed before this session ends. */
  async #join(): Promise<Segment> {
    let segment = await this.#writer.active();
    while (segment.state !== 'active') segment = await this.#writer.active();
    if (!this.#segments.has(segment)) {
      this.#segments.add(segment);
      segment.writers += 1;
    }
    return segment;
  }

  /** Notes that a commit refers to the records. */
  committed(): void {
    this.#committed = true;
  }

  end(): void {
    for (const segment of this.#segments) {
      if (!this.#committed) segment.wasteSinceMs ??= this.#deps.settings.nowMs();
      this.#writer.left(segment);
    }
    this.#segments.clear();
  }
}
