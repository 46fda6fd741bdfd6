/**
 * A small HTTP server in place of the service. It does on demand what the real one does not: it refuses requests, cuts
 * connections, and holds answers back. It keeps documents in a map and answers searches from a table. `intercept` sees each
 * request first.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into bodies they sent themselves
  readonly body: any;
  readonly atMs: number;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** True = the connection is cut, without an answer. */
  readonly cut?: true;
}

export function errorReply(
  status: number,
  code: string,
  extra: { retryAfter?: number; issues?: unknown } = {},
): Reply {
  return {
    status,
    headers: extra.retryAfter === undefined ? {} : { 'retry-after': String(extra.retryAfter) },
    body: {
      error: { code, message: `a ${code}`, ...(extra.issues === undefined ? {} : { issues: extra.issues }) },
    },
  };
}

const tokensOfDocument = 10;

export class ApiDouble {
  readonly requests: SeenRequest[] = [];
  readonly indexes: { readonly id: string; name: string; match_fields: readonly string[] }[] = [];
  readonly documents = new Map<string, { text: string; metadata: unknown }>();
  /** Query text -> document ids of the result chunks, in order. */
  readonly rankings = new Map<string, readonly string[]>();
  maxConcurrentRequests = 2;
  requestsPerMinute = 60;
  documentsMax = 100_000;
  /** How many of the ten tokens of a document are unknown. */
  unknownTokensOf: (docId: string) => number = () => 0;
  /** The largest number of requests that were in flight at one time. */
  inFlightMax = 0;
  intercept: (request: SeenRequest) => Reply | undefined | Promise<Reply | undefined> = () => undefined;
  #inFlight = 0;
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  async listen(port = 0): Promise<string> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  addIndex(name: string, id: string, matchFields: readonly string[] = []): object {
    const index = {
      id,
      name,
      model: 'words',
      model_version: '1',
      status: 'ready',
      created_at: '2026-11-22T12:00:00.000Z',
      match_fields: matchFields,
    };
    this.indexes.push(index);
    return index;
  }

  upserts(): readonly SeenRequest[] {
    return this.requests.filter(
      (request) => request.method === 'POST' && request.path.endsWith('/documents'),
    );
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.#inFlight);
    response.once('close', () => (this.#inFlight -= 1));
    const parts: Buffer[] = [];
    try {
      for await (const part of request) parts.push(part as Buffer);
    } catch {
      return;
    }
    const text = Buffer.concat(parts).toString('utf8');
    const seen: SeenRequest = {
      method: request.method ?? '',
      path: request.url ?? '',
      authorization: request.headers.authorization,
      body: text === '' ? undefined : JSON.parse(text),
      atMs: performance.now(),
    };
    this.requests.push(seen);
    const reply = (await this.intercept(seen)) ?? this.#answer(seen);
    if (reply.cut === true) {
      request.socket.destroy();
      return;
    }
    response.writeHead(reply.status ?? 200, {
      'content-type': 'application/json',
      'x-request-id': `request-${this.requests.length}`,
      ...reply.headers,
    });
    response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
  }

  #answer(request: SeenRequest): Reply {
    const [address = ''] = request.path.split('?');
    const route = `${request.method} ${address.replace(/^\/v1\/indexes\/[^/]+/, '/v1/indexes/ID')}`;
    switch (route) {
      case 'GET /v1/usage':
        return {
          body: {
            period_start: '2026-11-01T00:00:00.000Z',
            period_end: '2026-12-01T00:00:00.000Z',
            usage: {
              input_tokens: '9007199254740993',
              requests: this.requests.length,
              document_upserts: 0,
              searches: 0,
              scores: 0,
              documents: this.documents.size,
            },
            limits: {
              input_tokens: '50000000',
              documents: this.documentsMax,
              requests_per_minute: this.requestsPerMinute,
              max_concurrent_requests: this.maxConcurrentRequests,
              unknown: true,
            },
            remaining: { input_tokens: '0', documents: this.documentsMax - this.documents.size },
            tenant: "it's acme",
          },
        };
      case 'GET /v1/indexes':
        return { body: { data: this.indexes } };
      case 'POST /v1/indexes': {
        const id = `00000000-0000-4000-8000-${String(this.indexes.length).padStart(12, '0')}`;
        return { status: 201, body: this.addIndex(request.body.name, id, request.body.match_fields) };
      }
      case 'GET /v1/indexes/ID': {
        const given = decodeURIComponent(address.split('/').at(-1) ?? '');
        const found = this.indexes.find(
          ({ id, name }) => id === given.toLowerCase() || `name:${name}` === given,
        );
        return found === undefined ? errorReply(404, 'not_found') : { body: found };
      }
      case 'PATCH /v1/indexes/ID': {
        const index = this.indexes.find(({ id }) => request.path.endsWith(id));
        const other = this.indexes.find(({ id }) => id === request.body.swap_name_with);
        if (index === undefined) return errorReply(404, 'not_found');
        const { name } = index;
        index.name = other?.name ?? request.body.name ?? name;
        if (request.body.match_fields !== undefined) index.match_fields = request.body.match_fields;
        if (other !== undefined) other.name = name;
        return { body: index };
      }
      case 'DELETE /v1/indexes/ID': {
        const place = this.indexes.findIndex(({ id }) => request.path.endsWith(id));
        if (place === -1) return errorReply(404, 'not_found');
        this.indexes.splice(place, 1);
        return { body: { deleted: true } };
      }
      case 'POST /v1/indexes/ID/documents':
        return this.#upsert(request);
      case 'POST /v1/indexes/ID/search':
        return this.#search(request);
      default:
        return errorReply(404, 'not_found');
    }
  }

  #upsert(request: SeenRequest): Reply {
    if (this.documents.size + request.body.documents.length > this.documentsMax) {
      return errorReply(422, 'validation_error');
    }
    const failed: unknown[] = [];
    for (const { doc_id, text, metadata } of request.body.documents) {
      if (text.includes('no tokens')) failed.push({ doc_id, error: 'document produced no chunks' });
      else this.documents.set(doc_id, { text, metadata });
    }
    const upserted = request.body.documents.length - failed.length;
    const unknown = request.body.documents
      .map(({ doc_id }: { readonly doc_id: string }) => ({
        doc_id,
        unknown_tokens: this.unknownTokensOf(doc_id),
        input_tokens: tokensOfDocument,
      }))
      .filter(({ unknown_tokens }: { readonly unknown_tokens: number }) => unknown_tokens > 0);
    return {
      body: {
        index_id: 'x',
        upserted_documents: upserted,
        upserted_chunks: upserted,
        failed,
        ...(unknown.length === 0 ? {} : { unknown_tokens: unknown }),
        usage: { input_tokens: upserted * tokensOfDocument },
      },
    };
  }

  #search(request: SeenRequest): Reply {
    const results = (this.rankings.get(request.body.query) ?? []).map((docId, position) => ({
      doc_id: docId,
      chunk_id: `c${position}`,
      chunk_index: 0,
      score: 10 - position / 10,
      metadata: { n: position },
      ...(request.body.return_components === true ? { components: { maxsim: 1 } } : {}),
    }));
    return { body: { results, usage: { latency_ms: 1 } } };
  }
}
