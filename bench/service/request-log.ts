/** Finds the server's log lines of searches by their request id. A line may come before or after the client has its answer. */

export interface LoggedRequest {
  readonly request_id: string;
  readonly timings_ms: Readonly<Record<string, number>>;
}

export class RequestLog {
  readonly #lines = new Map<string, LoggedRequest>();
  readonly #waiting = new Map<string, PromiseWithResolvers<LoggedRequest>>();
  readonly #onForeignLine: (line: string) => void;

  /** Other lines, such as a warning of the runtime, are passed to `onForeignLine`. */
  constructor(onForeignLine: (line: string) => void) {
    this.#onForeignLine = onForeignLine;
  }

  add(text: string): void {
    const line = logLineOf(text);
    if (line === undefined) {
      this.#onForeignLine(text);
      return;
    }
    if (line.request_id === undefined || line.timings_ms?.['encode'] === undefined) return;
    const waiting = this.#waiting.get(line.request_id);
    this.#waiting.delete(line.request_id);
    if (waiting === undefined) this.#lines.set(line.request_id, line as LoggedRequest);
    else waiting.resolve(line as LoggedRequest);
  }

  async take(requestId: string): Promise<LoggedRequest> {
    const line = this.#lines.get(requestId);
    this.#lines.delete(requestId);
    if (line !== undefined) return line;
    const waiting = Promise.withResolvers<LoggedRequest>();
    this.#waiting.set(requestId, waiting);
    return waiting.promise;
  }

  /** Call this when no more lines will come. */
  end(reason: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(reason);
  }
}

function logLineOf(text: string): Partial<LoggedRequest> | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
