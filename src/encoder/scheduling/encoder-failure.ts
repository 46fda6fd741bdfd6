/** Why the encoder could not serve a request. */
export type FailureKind = 'invalid' | 'precondition' | 'exhausted' | 'deadline' | 'cancelled' | 'internal';

export interface EncoderFailureOptions {
  /** How long to wait before trying again. */
  readonly retryDelayMs?: number;
  readonly cause?: unknown;
}

/** The model cannot run this text, although it runs others. The message is that of the runtime, for the log only. */
export class TextRefused extends Error {
  override readonly name = 'TextRefused';
}

/** The message for callers about such a text. */
export const refusalMessage = 'the model cannot encode this text';

export class EncoderFailure extends Error {
  override readonly name = 'EncoderFailure';
  readonly kind: FailureKind;
  readonly retryDelayMs: number | undefined;

  constructor(kind: FailureKind, message: string, options: EncoderFailureOptions = {}) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.retryDelayMs = options.retryDelayMs;
  }
}
