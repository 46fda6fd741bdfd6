/** Writes documents that expire to a server that may be killed at any moment, and keeps their expected state. */
import { expect } from 'vitest';
import { expectReply, type Client, type Reply } from '../running/client.ts';
import { eventually } from '../running/eventually.ts';
import type { Random } from '../running/random.ts';
import { find, readUsage } from '../running/requests.ts';
import { documentPage, storedDocument, upserted } from '../running/wire.ts';

const documentCount = 60;
const never = Number.POSITIVE_INFINITY;

export class ExpiringLoad {
  readonly #address: string;
  readonly #indexId: string;
  /** The time at which each stored document expires. A document whose last write was not answered is absent. */
  readonly #expiries = new Map<string, number>();
  /** Documents that were found after a kill, and later were in no answer any more. */
  readonly ended = new Set<string>();

  constructor(indexId: string) {
    this.#indexId = indexId;
    this.#address = `/v1/indexes/${indexId}/documents`;
  }

  /** Stores, replaces and changes documents until the server is gone. */
  async write(client: Client, random: Random): Promise<void> {
    try {
      for (;;) await this.#writeOne(client, random);
    } catch (error) {
      // fetch reports every broken connection as a TypeError.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  async #writeOne(client: Client, random: Random): Promise<void> {
    const docId = `d${random.integer(0, documentCount - 1)}`;
    const known = this.#expiries.get(docId) ?? 0;
    const expiresAtMs = random.pick([
      never,
      Date.now() + 86_400_000,
      Date.now() + random.integer(200, 5_000),
    ]);
    const expires_at = expiresAtMs === never ? null : new Date(expiresAtMs).toISOString();
    this.#expiries.delete(docId);
    if (known > Date.now() && random.next() < 0.5) {
      const body = { expires_at, metadata: { changed: true } };
      const reply = await client.send('PATCH', `${this.#address}/${docId}`, { body });
      if (reply.status === 404) {
        hold(known <= Date.now(), `${docId} is there`);
        return;
      }
      expectReply(reply, storedDocument);
    } else {
      const query = expires_at === null ? '' : `?expires_at=${encodeURIComponent(expires_at)}`;
      const body = { documents: [{ doc_id: docId, text: 'river' }] };
      expectReply(await client.send('POST', `${this.#address}${query}`, { body }), upserted);
    }
    this.#expiries.set(docId, expiresAtMs);
  }

  /** Checks answers: they have each acknowledged document that has not expired, with its time, and none that has expired. */
  async check(client: Client): Promise<void> {
    const list = (): Promise<Reply> => client.send('GET', `${this.#address}?limit=1000`);
    const found = await timed(async () => expectReply(await list(), documentPage).data);
    for (const { doc_id: docId, expires_at: expiresAt } of found.answer) {
      const atMs = expiresAt === undefined ? never : Date.parse(expiresAt);
      hold(atMs > found.beganMs, `${docId} is not listed once it has expired`);
      hold((this.#expiries.get(docId) ?? atMs) === atMs, `${docId} keeps its time`);
      // The answer shows whether a write without an answer happened.
      this.#expiries.set(docId, atMs);
    }
    this.#expectComplete(found, 'the list');
    const query = { query: 'river', top_k: 100 };
    const searched = await timed(async () => (await find(client, this.#indexId, query)).results);
    for (const { doc_id: docId } of searched.answer)
      hold((this.#expiries.get(docId) ?? 0) > searched.beganMs, `${docId} is not found once it has expired`);
    this.#expectComplete(searched, 'the search');
  }

  #expectComplete({ answer, beganMs, endedMs }: Timed, what: string): void {
    const ids = new Set(answer.map(({ doc_id: docId }) => docId));
    for (const [docId, atMs] of this.#expiries) {
      hold(atMs <= endedMs || ids.has(docId), `${what} has ${docId}`);
      if (atMs > beganMs) continue;
      this.#expiries.delete(docId);
      this.ended.add(docId);
    }
  }

  /** Waits until all documents with a short life have expired. Returns how many are left, and how many count as stored. */
  async untilEnded(client: Client): Promise<{ readonly left: number; readonly stored: number }> {
    const soonMs = Date.now() + 60_000;
    await eventually(async () => {
      await this.check(client);
      return [...this.#expiries.values()].every((atMs) => atMs > soonMs);
    });
    return { left: this.#expiries.size, stored: (await readUsage(client)).usage.documents };
  }
}

function hold(fine: boolean, promise: string): void {
  expect(fine, promise).toBe(true);
}

interface Timed {
  readonly answer: readonly { readonly doc_id: string }[];
  readonly beganMs: number;
  readonly endedMs: number;
}

async function timed<Answer extends Timed['answer']>(ask: () => Promise<Answer>) {
  const beganMs = Date.now();
  const answer = await ask();
  return { answer, beganMs, endedMs: Date.now() };
}
