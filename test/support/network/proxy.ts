/** An HTTP proxy before the real server. It can answer by itself, or change an answer of the server. */
import { createServer } from 'node:http';

export interface ProxyRules {
  /** The answer of the proxy; absent = the server is asked. */
  readonly onRequest?: (
    path: string,
  ) =>
    | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }
    | undefined;
  /** Changes the body of the server's answer. */
  readonly onReply?: (path: string, body: string) => string;
}

export interface Proxy {
  readonly url: string;
  close(): Promise<void>;
}

export async function startProxy(target: string, rules: ProxyRules): Promise<Proxy> {
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      void answer(path, request.method ?? 'GET', request.headers, Buffer.concat(parts)).then(
        ({ status, headers, body }) => response.writeHead(status, headers).end(body),
        () => response.destroy(),
      );
    });
  });

  async function answer(
    path: string,
    method: string,
    headers: NodeJS.Dict<string | string[]>,
    body: Buffer<ArrayBuffer>,
  ): Promise<{ status: number; headers: Record<string, string>; body: string }> {
    const own = rules.onRequest?.(path);
    if (own !== undefined) return { status: own.status, headers: { ...own.headers }, body: own.body };
    const passed = ['authorization', 'content-type'].flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value] as [string, string]] : [];
    });
    const reply = await fetch(`${target}${path}`, {
      method,
      headers: passed,
      ...(body.length === 0 ? {} : { body }),
    });
    const text = await reply.text();
    const kept = ['content-type', 'x-request-id', 'retry-after'].flatMap((name) => {
      const value = reply.headers.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    return {
      status: reply.status,
      headers: Object.fromEntries(kept),
      body: rules.onReply === undefined ? text : rules.onReply(path, text),
    };
  }

  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('this is a bug: a TCP address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
