/**
 * Writes refused logins to the audit log. The log keeps a bounded number of entries, so endless attempts must not push out
 * the acts of operators. The first attempt is written at once, and all of the next minute as one entry with their number.
 */

const togetherMs = 60_000;

export type RefusedLoginDetail = Readonly<Record<string, string | number>>;

export interface RefusedLogin {
  readonly requestId: string;
  readonly address: string;
  /** `undefined` if the text is too short for a key. */
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

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#flush();
    clearTimeout(this.#timer);
  }

  /** The entry has the address and digest of the last attempt. */
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
