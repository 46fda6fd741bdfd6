/** Requests that many tests send: to make indexes, to upsert, to search, and one that takes long. */
import { expectReply, type Client, type Reply } from './client.ts';
import { index, ranked, upserted, usageSummary } from './wire.ts';
import type { DocumentInput, Index, Ranked, Upserted, UsageSummary } from './wire.ts';

let indexesMade = 0;

/** Makes an index with a name of its own. */
export async function makeIndex(
  client: Client,
  body: Readonly<Record<string, unknown>> = {},
): Promise<Index> {
  indexesMade += 1;
  return expectReply(await client.createIndex({ name: `index ${indexesMade}`, ...body }), index, 201);
}

/** Upserts documents. All of them must succeed. */
export async function put(
  client: Client,
  indexId: string,
  documents: readonly DocumentInput[],
): Promise<Upserted> {
  const reply = expectReply(await client.upsert(indexId, documents), upserted);
  if (reply.failed.length > 0 || reply.upserted_documents !== documents.length) {
    throw new Error(`not every document was stored: ${JSON.stringify(reply.failed)}`);
  }
  return reply;
}

export async function find(
  client: Client,
  indexId: string,
  body: Readonly<Record<string, unknown>>,
): Promise<Ranked> {
  return expectReply(await client.search(indexId, body), ranked);
}

export async function readUsage(client: Client): Promise<UsageSummary> {
  return expectReply(await client.usage(), usageSummary);
}

/**
 * Sends a long request of a tenant that may have one request at a time. Returns once the request holds the slot. To see that,
 * other requests are sent, which may take the slot for a moment. If that refuses the long request, it is sent again.
 */
export async function sendLong(
  client: Client,
  send: () => Promise<Reply>,
): Promise<{ readonly reply: Promise<Reply> }> {
  for (;;) {
    const sent = send();
    const outcome: { reply?: Reply; failed?: true } = {};
    const watch = async (): Promise<void> => {
      try {
        outcome.reply = await sent;
      } catch {
        // The caller gets the same promise and its reason.
        outcome.failed = true;
      }
    };
    void watch();
    const isOver = (): boolean => outcome.reply !== undefined || outcome.failed === true;
    while (!isOver()) {
      const watched = await client.usage();
      if (watched.status === 429 && !isOver()) return { reply: sent };
    }
    if (outcome.reply?.status !== 429)
      throw new Error(`the long request was over at once: ${outcome.reply?.status}`);
  }
}
