/** Asks one local encoder whether it lives and how much memory it holds: the supervisor's question. */
import { ChannelCredentials, type Client, type ServiceError } from '@grpc/grpc-js';
import { EncoderClient, type GetStatisticsResponse } from './wire.ts';

type Stub = Client & {
  getStatistics(
    request: object,
    options: { deadline: number },
    callback: (error: ServiceError | null, response: GetStatisticsResponse) => void,
  ): void;
};

export class HealthProbe {
  readonly #stub: Stub;

  constructor(address: string) {
    this.#stub = new EncoderClient(address, ChannelCredentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1000,
    }) as unknown as Stub;
  }

  /** Resident bytes of the process, or undefined when it did not answer in time. */
  async residentBytes(timeoutMs: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      this.#stub.getStatistics({}, { deadline: Date.now() + timeoutMs }, (error, response) => {
        resolve(error === null ? response.residentBytes : undefined);
      });
    });
  }

  close(): void {
    this.#stub.close();
  }
}
