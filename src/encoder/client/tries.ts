/** The tries of one call: what became of each, and when there is no use in another. */
import { status } from '@grpc/grpc-js';
import { ServiceError } from '../../errors.ts';
import { type CallError, isCallError } from '../protocol/call-error.ts';
import type { EncodeOptions } from '../protocol/contract.ts';
import { type Endpoint, type EndpointEvent, EndpointLost } from './endpoint.ts';
import { CorruptReply } from './replies.ts';
import { retryDelayTrailer } from '../protocol/wire.ts';

/** Some encoders may have ended under a text before it is known for that. */
const attemptsMax = 3;

export class Tries {
  readonly refusedBy = new Set<Endpoint>();
  readonly #lostBy = new Set<Endpoint>();
  /** Why the last encoder refused. */
  refusal: ServiceError | undefined;
  readonly #options: EncodeOptions;
  readonly #onEvent: (event: EndpointEvent) => void;
  #made = 0;
  #last: unknown;

  constructor(options: EncodeOptions, onEvent: (event: EndpointEvent) => void) {
    this.#options = options;
    this.#onEvent = onEvent;
  }

  /** What was counted had a cause that is gone. */
  forgive(): void {
    this.#made = 0;
  }

  /** Where a call is tried first, the least: where little is to do, and it was not lost. */
  cost(endpoint: Endpoint): number {
    return this.#lostBy.has(endpoint) ? Number.MAX_VALUE : endpoint.outstandingTokens;
  }

  assertLeft(): void {
    if (Date.now() >= this.#options.deadlineMs)
      throw unavailable('the deadline passed while encoding', { cause: this.#last });
    if (this.#made >= attemptsMax) throw unavailable('the encoders keep failing', { cause: this.#last });
  }

  /** Decides what a failed attempt means: returns when the call may be tried again, throws otherwise. */
  failed(endpoint: Endpoint, error: unknown): void {
    this.#options.signal.throwIfAborted();
    if (error instanceof ServiceError) throw error;
    if (error instanceof CorruptReply) {
      this.#onEvent({ event: 'corrupt_reply', address: endpoint.address, reason: error.message });
      throw unavailable('the encoder gave a corrupt reply', { cause: error });
    }
    if (error instanceof EndpointLost) return this.#count(endpoint, error);
    if (!isCallError(error)) throw error;
    switch (error.code) {
      case status.UNAVAILABLE:
        endpoint.lookAgain();
        return this.#count(endpoint, error);
      case status.RESOURCE_EXHAUSTED: {
        this.#refused(
          endpoint,
          unavailable('the encoders are busy', { cause: error, seconds: delaySeconds(error) }),
        );
        return;
      }
      case status.FAILED_PRECONDITION: {
        const { name, version } = this.#options.model;
        const message = `the encoder does not serve model ${name} version ${version}`;
        endpoint.lookAgain();
        this.#refused(endpoint, unavailable(message, { cause: error }));
        return;
      }
      case status.INVALID_ARGUMENT:
        throw new ServiceError('validation_error', error.details, { cause: error });
      case status.DEADLINE_EXCEEDED:
        throw unavailable('the deadline passed while encoding', { cause: error });
      default:
        throw unavailable('the encoder failed', { cause: error });
    }
  }

  #count(endpoint: Endpoint, error: unknown): void {
    this.#lostBy.add(endpoint);
    this.#made++;
    this.#last = error;
  }

  #refused(endpoint: Endpoint, refusal: ServiceError): void {
    this.refusedBy.add(endpoint);
    this.refusal = refusal;
  }
}

/** Whether the connection broke: for all that is known here, the process ended. */
export function isLoss(error: unknown): boolean {
  return isCallError(error) && error.code === status.UNAVAILABLE;
}

export function unavailable(
  message: string,
  options: { readonly cause?: unknown; readonly seconds?: number } = {},
): ServiceError {
  const { cause, seconds = 1 } = options;
  return new ServiceError('service_unavailable', message, { cause, retryAfterSeconds: seconds });
}

function delaySeconds(error: CallError): number {
  const [delayMs] = error.metadata.get(retryDelayTrailer);
  return Math.max(1, Math.ceil(Number(delayMs ?? 0) / 1000));
}
