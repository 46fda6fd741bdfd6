/**
 * Reads and writes message streams of gRPC calls, one message at a time, with flow control. The async iterator of a stream would
 * destroy the call when it is left early. Reads and writes of a cancelled call would never end. Here both end with the signal.
 */

/** The streams of both ends. */
export interface MessageStream {
  read(): unknown;
  write(message: object, written: (error: Error | null | undefined) => void): boolean;
  on(event: 'readable' | 'end', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

export class MessageReader<Message> {
  readonly #stream: MessageStream;
  readonly #signal: AbortSignal;
  #failure: { readonly error: unknown } | undefined;
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(stream: MessageStream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    const wake = (): void => this.#wake?.();
    stream.on('readable', wake);
    stream.on('end', () => {
      this.#ended = true;
      wake();
    });
    stream.on('error', (error) => {
      this.#failure ??= { error };
      wake();
    });
    signal.addEventListener('abort', wake, { once: true });
  }

  /** The next message; undefined at the end. Rejects with the stream's error or the signal's reason. */
  async next(): Promise<Message | undefined> {
    for (;;) {
      this.#signal.throwIfAborted();
      const message = this.#stream.read() as Message | null;
      if (message !== null) return message;
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** Resolves when the transport has taken the message; rejects with its error or the signal's reason. */
export async function writeMessage(
  stream: MessageStream,
  message: object,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    stream.write(message, (error: Error | null | undefined) => {
      signal.removeEventListener('abort', abort);
      if (error === null || error === undefined) resolve();
      else reject(error);
    });
  });
}
