/** The standard service grpc.health.v1, for server and client. The only importer of its package. */
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

/** Adds the health service to a server, as NOT_SERVING. Returns the function that sets the state. */
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

/** A client that uses the channel of another client. */
export function healthClient(address: string, credentials: ChannelCredentials, shared: Client): HealthClient {
  return new HealthRpc(address, credentials, {
    channelOverride: shared.getChannel(),
  }) as unknown as HealthClient;
}
