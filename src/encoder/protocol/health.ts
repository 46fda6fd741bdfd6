/** The standard grpc.health.v1 service, and the only importer of its package: the server's half and the client's. */
import {
  type ChannelCredentials,
  type Client,
  makeGenericClientConstructor,
  type Server,
  type ServiceError,
} from '@grpc/grpc-js';
import { HealthImplementation, service } from 'grpc-health-check';
import { serviceName } from './wire.ts';

export type HealthState = 'SERVING' | 'NOT_SERVING';

/** Adds the service, NOT_SERVING; returns what sets its state (of the server as a whole and of the encoder service). */
export function addHealthService(server: Server): (state: HealthState) => void {
  const health = new HealthImplementation({ '': 'NOT_SERVING', [serviceName]: 'NOT_SERVING' });
  health.addToServer(server);
  return (state) => {
    health.setStatus('', state);
    health.setStatus(serviceName, state);
  };
}

export interface HealthClient extends Client {
  check(
    request: { service: string },
    options: { deadline: number },
    callback: (error: ServiceError | null, response: { status: string } | undefined) => void,
  ): void;
}

const HealthRpc = makeGenericClientConstructor(service, 'grpc.health.v1.Health');

/** A client over the channel that another client already has. */
export function healthClient(address: string, credentials: ChannelCredentials, shared: Client): HealthClient {
  return new HealthRpc(address, credentials, {
    channelOverride: shared.getChannel(),
  }) as unknown as HealthClient;
}
