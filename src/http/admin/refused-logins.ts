/**
 * Refused logins on their way to the audit log. It keeps so many entries and no more, so whoever tries keys without end must
 * not push out what was done: the first is written at once, those of the minute after it as one entry with their number.
 */

const togetherMs = 60_000;

/** What the audit log has of it. */
export type RefusedLoginDetail = Readonly<Record<string, string | number>>;

export interface RefusedLogin {
  readonly requestId: string;
  readonly address: string;
  /** `undefined`: what was given looks like no key. */
  readonly keyDigest: string | undefined;
}

export class RefusedLogins {
  readonly #write: (detail: RefusedLoginDetail) => Promise<void>;
  readonly #onError: (login: RefusedLogin, error: unknown) => void;
  #waiting: RefusedLogin | undefined;
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    write: (detail: RefusedLoginDetail) => Promise<void>,
    onError: (login: RefusedLogin, error: unknown) => void,
  ) {
    this.#write = write;
    this.#onError = onError;
  }

  note(login: RefusedLogin): void {
    this.#waiting = login;
    this.#attempts += 1;
    if (this.#timer === undefined) void this.#flush();
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#flush();
    clearTimeout(this.#timer);
  }

  /** The last of them stands for all. */
  async #flush(): Promise<void> {
    this.#timer = undefined;
    const login = this.#waiting;
    if (login === undefined) return;
    const attempts = this.#attempts;
    this.#waiting = undefined;
    this.#attempts = 0;
    this.#timer = setTimeout(() => void this.#flush(), togetherMs).unref();
    const { address, keyDigest } = login;
    try {
      await this.#write({ attempts, address, ...(keyDigest === undefined ? {} : { key_digest: keyDigest }) });
    } catch (error) {
      this.#onError(login, error);
    }
  }
}
