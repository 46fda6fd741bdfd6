/** One kept connection with the least HTTP that an answer needs, because a client library would cost as much as the server. */
import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly requestId: string;
  readonly body: string;
  /** Milliseconds from the first byte written until the whole answer was there. */
  readonly totalMs: number;
}

export class Connection {
  readonly #socket: Socket;
  #received = '';
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (chunk: string) => {
      this.#received += chunk;
      this.#wake?.();
    });
    const fail = (failure: Error): void => {
      this.#failure ??= failure;
      this.#wake?.();
    };
    this.#socket.on('error', fail);
    this.#socket.on('close', () => fail(new Error('the server closed the connection')));
  }

  /** Sends the text of a request. Throws for any status but 200, and when the connection ends before the answer. */
  async exchange(request: string): Promise<Answer> {
    const startedAt = performance.now();
    this.#received = '';
    this.#socket.write(request);
    let head: number;
    for (;;) {
      head = this.#received.indexOf('\r\n\r\n');
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1]);
      if (head !== -1 && this.#received.length >= head + 4 + length) break;
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const totalMs = performance.now() - startedAt;
    const requestId = /\r\nx-request-id: (\S+)/i.exec(this.#received)?.[1];
    const body = this.#received.slice(head + 4);
    const [statusLine = ''] = this.#received.split('\r\n', 1);
    if (!statusLine.startsWith('HTTP/1.1 200 ') || requestId === undefined)
      throw new Error(`the server answered ${statusLine}: ${body.slice(0, 500)}`);
    return { requestId, totalMs, body };
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The text of a JSON request. */
export function requestText(url: URL, body: unknown, headers: Readonly<Record<string, string>> = {}): string {
  const text = JSON.stringify(body);
  return [
    `POST ${url.pathname} HTTP/1.1`,
    `host: ${url.host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    '',
    text,
  ].join('\r\n');
}
