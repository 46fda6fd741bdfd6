/** Asks one local encoder for its statistics. */
import { ChannelCredentials } from '@grpc/grpc-js';
import { EncoderClient, type GetStatisticsResponse } from '../protocol/wire.ts';

export class EncoderProbe {
  readonly #rpc: EncoderClient;

  constructor(address: string) {
    this.#rpc = new EncoderClient(address, ChannelCredentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1000,
    });
  }

  /** Undefined when the encoder does not answer in time. */
  async statistics(timeoutMs: number): Promise<GetStatisticsResponse | undefined> {
    return new Promise((resolve) => {
      this.#rpc.getStatistics({}, { deadline: Date.now() + timeoutMs }, (error, response) => {
        resolve(error === null ? response : undefined);
      });
    });
  }

  close(): void {
    this.#rpc.close();
  }
}
