/**
 * Writes to a server that may be killed at any moment, and keeps a model of its expected state: the documents, the usage, and
 * the operations whose answers never came.
 */
import { expectReply, type Client } from './client.ts';
import type { Random } from './random.ts';
import { deleted, ranked, storedDocument, upserted } from './wire.ts';

/** A text with a known number of chunks and tokens, so that any version of a document can be checked. */
export interface KnownText {
  readonly text: string;
  readonly chunks: number;
  readonly tokens: number;
}

/** One version of one document. */
export interface Version {
  readonly uid: string;
  readonly known: KnownText;
}

/** The effect of an operation: what it adds to the usage, and the documents afterwards (`undefined` = absent). */
export interface Operation {
  readonly kind: 'upsert' | 'update' | 'delete' | 'search';
  readonly changes: ReadonlyMap<string, Version | undefined>;
  readonly tokens: bigint;
}

export interface Ledger {
  inputTokens: bigint;
  requests: number;
  documentUpserts: number;
  searches: number;
}

export interface LoadOptions {
  readonly client: Client;
  readonly indexId: string;
  readonly random: Random;
  readonly texts: readonly KnownText[];
  /** Called after each acknowledgement. */
  readonly onAcknowledged: () => void;
}

export class LoadModel {
  readonly documents = new Map<string, Version>();
  readonly ledger: Ledger = { inputTokens: 0n, requests: 0, documentUpserts: 0, searches: 0 };
  /** Operations that were sent and never answered. */
  unanswered: Operation[] = [];
  #versions = 0;

  /** Upserts, replaces, updates and deletes the documents `<name>-0`, `<name>-1`, … until the server is gone. */
  async write(name: string, documentCount: number, options: LoadOptions): Promise<void> {
    for (;;) {
      const operation = this.#nextWrite(name, documentCount, options);
      if (!(await this.#perform(operation, options))) return;
    }
  }

  /** Searches until the server is gone. */
  async search(
    query: { readonly text: string; readonly tokens: bigint },
    options: LoadOptions,
  ): Promise<void> {
    const operation: Operation = { kind: 'search', changes: new Map(), tokens: query.tokens };
    for (;;) {
      const answered = await this.#attempt(operation, options, async () => {
        expectReply(await options.client.search(options.indexId, { query: query.text }), ranked);
      });
      if (!answered) return;
    }
  }

  /** Notes that an operation without an answer was committed. */
  settle(operation: Operation): void {
    this.#apply(operation);
  }

  #nextWrite(name: string, documentCount: number, { random, texts }: LoadOptions): Operation {
    const pickId = (): string => `${name}-${random.integer(0, documentCount - 1)}`;
    if (random.next() < 0.25) {
      return { kind: 'delete', changes: new Map([[pickId(), undefined]]), tokens: 0n };
    }
    const updated = pickId();
    const stored = this.documents.get(updated);
    if (stored !== undefined && random.next() < 0.25) {
      this.#versions += 1;
      const version = { uid: `version ${this.#versions}`, known: stored.known };
      return { kind: 'update', changes: new Map([[updated, version]]), tokens: 0n };
    }
    const changes = new Map<string, Version>();
    const batch = random.integer(1, 4);
    for (let count = 0; count < batch; count += 1) {
      this.#versions += 1;
      changes.set(pickId(), { uid: `version ${this.#versions}`, known: random.pick(texts) });
    }
    const tokens = [...changes.values()].reduce((sum, version) => sum + version.known.tokens, 0);
    return { kind: 'upsert', changes, tokens: BigInt(tokens) };
  }

  async #perform(operation: Operation, options: LoadOptions): Promise<boolean> {
    const { client, indexId } = options;
    return this.#attempt(operation, options, async () => {
      if (operation.kind === 'delete') {
        const [docId = ''] = operation.changes.keys();
        const reply = expectReply(await client.deleteDocument(indexId, docId), deleted);
        if (reply.deleted !== this.documents.has(docId))
          throw new Error(`deleted ${docId}: ${reply.deleted}`);
        return;
      }
      if (operation.kind === 'update') {
        const [[docId, version] = ['']] = operation.changes;
        const path = `/v1/indexes/${indexId}/documents/${docId}`;
        const body = { metadata: { doc: docId, uid: version?.uid } };
        const reply = expectReply(await client.send('PATCH', path, { body }), storedDocument);
        if (reply.chunk_count !== version?.known.chunks) throw new Error(`updated ${JSON.stringify(reply)}`);
        return;
      }
      const documents = [...operation.changes].map(([docId, version]) => ({
        doc_id: docId,
        text: version?.known.text ?? '',
        metadata: { doc: docId, uid: version?.uid },
      }));
      const reply = expectReply(await client.upsert(indexId, documents), upserted);
      const chunks = [...operation.changes.values()].reduce(
        (sum, version) => sum + (version?.known.chunks ?? 0),
        0,
      );
      if (reply.upserted_documents !== documents.length || reply.upserted_chunks !== chunks) {
        throw new Error(
          `acknowledged ${JSON.stringify(reply)}, ${documents.length} documents of ${chunks} chunks sent`,
        );
      }
    });
  }

  /** Runs an operation. Returns false if the server has gone. Other errors are thrown. */
  async #attempt(operation: Operation, options: LoadOptions, send: () => Promise<void>): Promise<boolean> {
    try {
      await send();
    } catch (error) {
      // fetch reports every broken connection as a TypeError.
      if (!(error instanceof TypeError)) throw error;
      this.unanswered.push(operation);
      return false;
    }
    this.#apply(operation);
    options.onAcknowledged();
    return true;
  }

  #apply(operation: Operation): void {
    for (const [docId, version] of operation.changes) {
      if (version === undefined) this.documents.delete(docId);
      else this.documents.set(docId, version);
    }
    this.ledger.requests += 1;
    this.ledger.inputTokens += operation.tokens;
    if (operation.kind === 'upsert') this.ledger.documentUpserts += operation.changes.size;
    if (operation.kind === 'search') this.ledger.searches += 1;
  }
}
