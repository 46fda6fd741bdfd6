/** The attempts of one call: how each ended, and whether another one makes sense. */
import { status } from '@grpc/grpc-js';
import { ServiceError } from '../../errors.ts';
import { type CallError, isCallError } from '../protocol/call-error.ts';
import type { EncodeOptions } from '../protocol/contract.ts';
import { type Endpoint, type EndpointEvent, EndpointLost } from './endpoint.ts';
import { CorruptReply } from './replies.ts';
import { retryDelayTrailer } from '../protocol/wire.ts';

/** Several encoders may end while they run a text, before it is known to be unencodable. */
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

  /** Forgets the failed attempts, because their cause is known. */
  forgive(): void {
    this.#made = 0;
  }

  /** The call goes to the endpoint with the lowest cost: one with little work, that has not failed it before. */
  cost(endpoint: Endpoint): number {
    return this.#lostBy.has(endpoint) ? Number.MAX_VALUE : endpoint.outstandingTokens;
  }

  assertLeft(): void {
    if (Date.now() >= this.#options.deadlineMs)
      throw unavailable('the deadline passed while encoding', { cause: this.#last });
    if (this.#made >= attemptsMax) throw unavailable('the encoders keep failing', { cause: this.#last });
  }

  /** Decides after a failed attempt. Returns when the call may be tried again, throws otherwise. */
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

/** Whether the connection broke. Then the process may have ended. */
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
