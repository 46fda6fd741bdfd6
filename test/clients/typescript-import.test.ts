/** How the TypeScript client imports: its batches, their order, and what stops it. A fake stands in for the requests. */
import { describe, expect, test } from 'vitest';
import {
  ApiError,
  type Document,
  type ImportOptions,
  type ImportProgress,
} from '../../clients/typescript/src/index.ts';
import { Import, type ImportCalls } from '../../clients/typescript/src/import/import.ts';
import { LateError } from '../../clients/typescript/src/retry.ts';
import type { StoredDocument, UpsertResult } from '../../clients/typescript/src/types.ts';

interface Sent {
  readonly documents: readonly Document[];
  readonly bytes: number;
  readonly signal: AbortSignal;
  readonly onConcurrencyLimit: () => void;
}

type Reply = UpsertResult | Error;

/** Upserts that were sent, in order. `answer` says what becomes of one. */
class Service {
  readonly sent: Sent[] = [];
  readonly expiries: (string | undefined)[] = [];
  inFlight = 0;
  /** Documents that the index lists, and the ids that were deleted of it. */
  listed: readonly StoredDocument[] = [];
  readonly deleted: string[] = [];
  remaining = Infinity;
  answer: (sent: Sent, number: number) => Reply | Promise<Reply> = ({ documents }) => stored(documents);
  readonly calls: ImportCalls = {
    upsert: async ({ json, expiresAt }, signal, onConcurrencyLimit) => {
      const { documents } = JSON.parse(json) as { readonly documents: readonly Document[] };
      this.expiries.push(expiresAt);
      const sent = { documents, bytes: Buffer.byteLength(json), signal, onConcurrencyLimit };
      this.sent.push(sent);
      this.inFlight += 1;
      const reply = await this.answer(sent, this.sent.length);
      this.inFlight -= 1;
      if (reply instanceof Error) throw reply;
      return reply;
    },
    remainingDocuments: () => Promise.resolve(this.remaining),
    storedParts: () => Promise.resolve(each(this.listed)),
    deleteDocument: (docId) => {
      this.deleted.push(docId);
      return Promise.resolve({ deleted: true });
    },
  };

  ids(): readonly (readonly string[])[] {
    return this.sent.map(({ documents }) => documents.map(({ doc_id }) => doc_id));
  }
}

// eslint-disable-next-line @typescript-eslint/require-await
async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

function stored(documents: readonly Document[], refused: readonly string[] = []): UpsertResult {
  const length = documents.length - refused.length;
  const failed = refused.map((docId) => ({ doc_id: docId, error: 'refused' }));
  const usage = { input_tokens: 1, document_count: 1, chunk_count: 1, candidate_count: 0, latency_ms: 1 };
  return { index_id: 'i', upserted_documents: length, upserted_chunks: length, failed, usage };
}

function refusal(status: number, issues: ApiError['issues'] = []): ApiError {
  const code = status === 422 ? 'validation_error' : 'internal_error';
  return new ApiError('m', { status, code, issues, requestId: 'r', retryAfterSeconds: undefined });
}

const documents = (count: number, text = 't'): readonly Document[] =>
  Array.from({ length: count }, (_, at) => ({ doc_id: `d${at}`, text }));
const importAll = (
  service: Service,
  given: Iterable<Document> | AsyncIterable<Document>,
  options: ImportOptions = {},
) => new Import(service.calls, options).run(given);
/** All that is under way has come as far as it can. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('batches', () => {
  test('keep the texts in a metadata field, if they are to be kept', async () => {
    const service = new Service();
    const given = [
      { doc_id: 'a', text: 'one' },
      { doc_id: 'b', text: 'two', metadata: { kind: 'x' } },
      { doc_id: 'c', text: 'three', metadata: { body: 'before' } },
    ];
    const report = await importAll(service, given, { keepText: 'body' });
    expect(report.failed).toEqual([
      { doc_id: 'c', error: 'metadata.body: the import adds a field of this name' },
    ]);
    expect(service.sent[0]?.documents).toEqual([
      { doc_id: 'a', text: 'one', metadata: { body: 'one' } },
      { doc_id: 'b', text: 'two', metadata: { kind: 'x', body: 'two' } },
    ]);
    expect(given[0]).toEqual({ doc_id: 'a', text: 'one' });
  });

  test('have the parts of long documents, and settle a document with its last part', async () => {
    const service = new Service();
    const long = { doc_id: 'long', text: 'A sentence. '.repeat(400), metadata: { year: 1 } };
    service.listed = [
      { doc_id: 'long', chunk_count: 1, metadata: {} },
      ...[1, 2, 3, 4, 5, 6].map((part) => ({
        doc_id: `long#${part}`,
        chunk_count: 1,
        metadata: { part_of: 'long', part },
      })),
      { doc_id: 'short', chunk_count: 1, metadata: {} },
      { doc_id: 'short#1', chunk_count: 1, metadata: { part_of: 'short', part: 1 } },
      { doc_id: 'of another import', chunk_count: 1, metadata: {} },
    ] as readonly StoredDocument[];
    service.answer = ({ documents: sent }) =>
      stored(
        sent,
        sent.filter(({ doc_id: docId }) => docId === 'long#2').map((part) => part.doc_id),
      );
    const settledAfter: number[] = [];
    const report = await importAll(service, [long, { doc_id: 'short', text: 't' }], {
      cut: 1024,
      keepText: 'body',
      concurrency: 1,
      onProgress: (progress) => settledAfter.push(progress.settled),
    });
    expect(service.ids()).toEqual([['long#1', 'long#2', 'long#3', 'long#4', 'long#5', 'short']]);
    expect(service.sent[0]?.documents[4]).toMatchObject({
      metadata: { year: 1, part_of: 'long', part: 5, body: expect.stringMatching(/^A sentence/) as string },
    });
    expect(report.failed).toEqual([{ doc_id: 'long#2', part_of: 'long', error: 'refused' }]);
    // A part of the long one is not stored.
    expect(service.deleted).toEqual(['short#1']);
    expect(report.deleted).toBe(1);
    expect(settledAfter).toEqual([2]);
  });

  test('leave what was whole where a part is not stored', async () => {
    const service = new Service();
    const long = { doc_id: 'long', text: 'A sentence. '.repeat(400) };
    service.listed = [
      { doc_id: 'long', chunk_count: 1, metadata: {} },
      { doc_id: 'long#1', chunk_count: 1, metadata: { part_of: 'long', part: 1 } },
    ] as readonly StoredDocument[];
    await importAll(service, [long], { cut: 1024 });
    expect(service.deleted).toEqual([]);
  });

  test('delete what a cut leaves behind, and nothing of others', async () => {
    const service = new Service();
    const long = { doc_id: 'long', text: 'A sentence. '.repeat(100) };
    service.listed = (
      [
        ['long', {}],
        ['long#1', { part_of: 'long', part: 1 }],
        ['long#2', { part_of: 'long', part: 2 }],
        ['long#3', { part_of: 'long', part: 3 }],
        ['long#intro', { part_of: 'long', part: 'intro' }],
        ['long#9', { part_of: 'another', part: 9 }],
        ['blank', {}],
      ] as const
    ).map(([docId, metadata]) => ({ doc_id: docId, chunk_count: 1, metadata })) as readonly StoredDocument[];
    const blank = { doc_id: 'blank', text: '\n'.repeat(3000) };
    const odd = { doc_id: 'odd', text: long.text, metadata: { big: 1n } };
    const none = { doc_id: 'none', text: 't', metadata: null };
    const report = await importAll(service, [long, blank, odd, none], {
      cut: 1024,
      keepText: 'body',
    });
    expect(service.ids()).toEqual([['long#1', 'long#2', 'blank', 'none']]);
    expect(report.failed.map(({ doc_id }) => doc_id)).toEqual(['odd']);
    expect(service.deleted).toEqual(['long', 'long#3']);
  });

  test('delete nothing of the documents before, of which some failed', async () => {
    const service = new Service();
    service.listed = [
      { doc_id: 'long', chunk_count: 1, metadata: {} },
      ...[1, 2].map((part) => ({
        doc_id: `long#${part}`,
        chunk_count: 1,
        metadata: { part_of: 'long', part },
      })),
    ] as readonly StoredDocument[];
    await importAll(service, [{ doc_id: 'long', text: 'A sentence. '.repeat(100) }], {
      cut: 1024,
      resumed: { settled: 1, failed: 1 },
    });
    expect(service.deleted).toEqual([]);
  });

  test('go on behind the documents that are settled, and know the parts of all', async () => {
    const service = new Service();
    const long = { doc_id: 'long', text: 'A sentence. '.repeat(100) };
    service.listed = ['long#1', 'long#2', 'long#3'].map((docId, place) => ({
      doc_id: docId,
      chunk_count: 1,
      metadata: { part_of: 'long', part: place + 1 },
    })) as readonly StoredDocument[];
    const settledAfter: number[] = [];
    await importAll(service, [long, { doc_id: 'b', text: 't' }], {
      cut: 1024,
      resumed: { settled: 1, failed: 0 },
      onProgress: (progress) => settledAfter.push(progress.settled),
    });
    expect(service.ids()).toEqual([['b']]);
    expect(settledAfter).toEqual([2]);
    expect(service.deleted).toEqual(['long#3']);
  });

  test('have documents of one expiry, which is no part of a document', async () => {
    const service = new Service();
    const day = (number: number): string => `2030-01-0${number}T00:00:00.000Z`;
    const expiring = [
      { doc_id: 'a', text: 't', expires_at: day(1) },
      { doc_id: 'b', text: 't', expires_at: new Date(day(1)) },
      { doc_id: 'c', text: 't' },
      { doc_id: 'd', text: 't' },
      { doc_id: 'e', text: 't', expires_at: day(2) },
    ];
    await importAll(service, expiring, { concurrency: 1 });
    expect(service.ids()).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    expect(service.expiries).toEqual([day(1), undefined, day(2)]);
    expect(service.sent.flatMap((sent) => sent.documents)).toEqual(
      expiring.map(({ doc_id, text }) => ({ doc_id, text })),
    );
  });

  test('hold at most 50 documents, in the order of the input', async () => {
    const service = new Service();
    expect(await importAll(service, documents(120), { concurrency: 1 })).toMatchObject({ documents: 120 });
    expect(service.ids().map(({ length }) => length)).toEqual([50, 50, 20]);
    expect(service.ids().flat()).toEqual(documents(120).map(({ doc_id }) => doc_id));
  });

  test.each([104_700, 104_857, 150_001])('of texts of %i bytes fill 5 MiB and no more', async (bytes) => {
    const service = new Service();
    await importAll(service, documents(120, 'x'.repeat(bytes)), { concurrency: 1 });
    const limit = 5 * 1024 * 1024;
    expect(service.ids().flat()).toHaveLength(120);
    for (const [at, batch] of service.sent.entries()) {
      expect(batch.bytes).toBeLessThanOrEqual(limit);
      const next = service.sent[at + 1]?.documents[0];
      const wouldFit = next !== undefined && batch.bytes + JSON.stringify(next).length + 1 <= limit;
      if (batch.documents.length < 50) expect(wouldFit).toBe(false);
    }
  });

  test('with the same id follow each other: the last document stays', async () => {
    const service = new Service();
    const given = ['a', 'b', 'a', 'c', 'a'].map((doc_id, at) => ({ doc_id, text: String(at) }));
    service.answer = async ({ documents: batch }) => {
      expect(service.inFlight).toBe(1);
      await settled();
      return stored(batch);
    };
    await importAll(service, given, { concurrency: 8 });
    expect(service.ids()).toEqual([['a', 'b'], ['a', 'c'], ['a']]);
  });
});

test('progress comes in the order of the input, and says from where to go on', async () => {
  const service = new Service();
  const first = Promise.withResolvers<void>();
  const seen: ImportProgress[] = [];
  service.answer = async ({ documents: batch }, number) => {
    if (number === 1) await first.promise;
    return stored(batch);
  };
  const running = importAll(service, documents(150), { concurrency: 2, onProgress: (one) => seen.push(one) });
  while (service.sent.length < 3) await settled();
  expect(seen).toEqual([]);
  first.resolve();
  await running;
  expect(seen).toMatchObject(
    [50, 100, 150].map((count) => ({ settled: count, documents: count, failed: 0 })),
  );
});

test('the concurrency goes down with each refusal, never below one, and comes back up', async () => {
  const service = new Service();
  const most: number[] = [];
  service.answer = async ({ documents: batch, onConcurrencyLimit }, number) => {
    if (number <= 3) for (let times = 0; times < 5; times += 1) onConcurrencyLimit();
    await settled();
    most.push(service.inFlight);
    return stored(batch);
  };
  await importAll(service, documents(50 * 100), { concurrency: 3 });
  expect(most.slice(3, 20)).toEqual(Array(17).fill(1));
  expect(Math.max(...most.slice(60))).toBe(3);
});

/** A service that is too slow for a request, as the client reports it. */
const late = (): LateError => new LateError(refusal(503));

describe('on a service that is too slow', () => {
  /** So many documents at once are too many. */
  const slowAbove = (service: Service, documentsMax: number): void => {
    let inFlight = 0;
    service.answer = async ({ documents: batch }) => {
      inFlight += batch.length;
      await settled();
      const isTooMuch = inFlight > documentsMax;
      await settled();
      inFlight -= batch.length;
      return isTooMuch ? late() : stored(batch);
    };
  };

  test('an import sends fewer requests at once, then smaller ones, and stores every document once', async () => {
    const service = new Service();
    const seen: ImportProgress[] = [];
    slowAbove(service, 12);
    const report = await importAll(service, documents(500), {
      concurrency: 4,
      onProgress: (one) => seen.push(one),
    });
    expect(report).toMatchObject({ documents: 500, failed: [] });
    const sizes = service.ids().map(({ length }) => length);
    expect(sizes.slice(0, 8)).toEqual([50, 50, 50, 50, 50, 25, 12, 12]);
    const isSorted = seen.every(({ settled: count }, at) => at === 0 || count > seen[at - 1]!.settled);
    expect([isSorted, seen.at(-1)?.settled]).toEqual([true, 500]);
  });

  test.each([1, 7, 20, 60])(
    'an import ends where no more than %i documents at once are stored',
    async (most) => {
      const service = new Service();
      slowAbove(service, most);
      expect(await importAll(service, documents(300), { concurrency: 8 })).toMatchObject({ documents: 300 });
    },
  );

  test('a document that comes late alone three times fails, and the others are stored', async () => {
    const service = new Service();
    service.answer = async ({ documents: batch }) => {
      await settled();
      return batch.some(({ doc_id }) => doc_id === 'd70') ? late() : stored(batch);
    };
    const { documents: count, failed } = await importAll(service, documents(400), { concurrency: 4 });
    expect([count, failed]).toEqual([
      399,
      [{ doc_id: 'd70', error: expect.stringMatching(/^sent alone three times: 503 /) }],
    ]);
    expect(service.ids().filter((ids) => ids.join() === 'd70')).toHaveLength(3);
  });

  test('three such documents in a row end the import with the error of the service', async () => {
    const service = new Service();
    service.answer = () => late();
    await expect(importAll(service, documents(200), { concurrency: 4 })).rejects.toMatchObject({
      cause: { status: 503 },
      report: { documents: 0, failed: [{ doc_id: 'd0' }, { doc_id: 'd1' }] },
    });
  });

  test('a document that is refused stays refused, and is not sent again', async () => {
    const service = new Service();
    const issues = [{ path: 'documents.3.metadata', message: 'too deep', code: 'depth' }];
    service.answer = ({ documents: batch }, number) => {
      if (number === 1) return refusal(422, issues);
      return number === 2 ? late() : stored(batch);
    };
    const report = await importAll(service, documents(10), { concurrency: 2 });
    expect(report).toMatchObject({ documents: 9, failed: [{ doc_id: 'd3' }] });
    expect(service.ids().slice(1).flat()).not.toContain('d3');
  });

  test('the last document of a repeated id stays, however the batch before it is cut', async () => {
    const service = new Service();
    const texts = new Map<string, string>();
    service.answer = async ({ documents: batch }) => {
      await settled();
      if (batch.length > 2) return late();
      for (const { doc_id, text } of batch) texts.set(doc_id, text);
      return stored(batch);
    };
    const given = [...documents(9), { doc_id: 'd8', text: 'last' }, { doc_id: 'd0', text: 'last' }];
    await importAll(service, given, { concurrency: 4 });
    expect([texts.get('d0'), texts.get('d8')]).toEqual(['last', 'last']);
  });
});

describe('a batch that the service refuses', () => {
  test('for some of its documents is sent again without them', async () => {
    const service = new Service();
    const issues = [{ path: 'documents.3.metadata', message: 'too deep', code: 'depth' }];
    service.answer = ({ documents: batch }) => (batch.length === 10 ? refusal(422, issues) : stored(batch));
    expect(await importAll(service, documents(10))).toMatchObject({
      documents: 9,
      failed: [{ doc_id: 'd3', error: 'documents.3.metadata: too deep' }],
    });
  });

  test.each([413, 422, 500])('as a whole (%i) fails alone, and the others go on', async (status) => {
    const service = new Service();
    service.answer = ({ documents: batch }, number) => (number === 2 ? refusal(status) : stored(batch));
    const { documents: count, failed } = await importAll(service, documents(120), { concurrency: 1 });
    expect([count, failed.length, failed[0]?.doc_id]).toEqual([70, 50, 'd50']);
  });

  test('as the allowance of stored documents is used up stops the import', async () => {
    const service = new Service();
    service.remaining = 20;
    service.answer = ({ documents: batch }, number) => (number === 2 ? refusal(422) : stored(batch));
    const running = importAll(service, documents(150), { concurrency: 1 });
    await expect(running).rejects.toMatchObject({
      report: { documents: 50, failed: [] },
      cause: { status: 422 },
    });
  });
});

test('an answer that leaves out a document stops the import', async () => {
  const service = new Service();
  service.answer = () => stored(documents(1));
  await expect(importAll(service, documents(2))).rejects.toMatchObject({
    cause: { code: 'unexpected_response' },
  });
});

test('an input that breaks off is an error, after all that was sent of it is settled', async () => {
  const service = new Service();
  service.answer = async ({ documents: batch, signal }) => {
    await settled();
    expect(signal.aborted).toBe(false);
    return stored(batch);
  };
  async function* broken() {
    yield* documents(101);
    throw new Error('cut off');
  }
  await expect(importAll(service, broken())).rejects.toMatchObject({
    cause: { message: 'cut off' },
    report: { documents: 100 },
  });
});

test('the caller ends an import that waits for its next document', async () => {
  const stop = new AbortController();
  async function* endless() {
    yield* documents(1);
    setImmediate(() => stop.abort(new Error('enough')));
    await new Promise(() => {});
  }
  await expect(importAll(new Service(), endless(), { signal: stop.signal })).rejects.toThrow('enough');
});
