/**
 * Indexes that a request names. The name is resolved before the route runs, so that routes, metrics and answers know the id
 * alone. It is read from the catalog for each request: the next one after a swap finds the other index.
 */
import type { FastifyInstance } from 'fastify';
import type { RequestContext, Service } from '../service/contract.ts';
import { nameIn } from './schemas/fields.ts';

/** The id of the index at an address that was checked. @throws {ServiceError} `not_found` for a name that no index has. */
export async function indexIdAt(service: Service, context: RequestContext, address: string): Promise<string> {
  const name = nameIn(address);
  return name === undefined ? address : await service.indexIdOf(context, name);
}

/** Puts the id of the index into the parameters of each request whose address has its name. */
export function resolveIndexNames(app: FastifyInstance, service: Service): void {
  app.addHook('preHandler', async ({ params, scope }) => {
    const given = params as { index_id?: string };
    const { index_id: address } = given;
    if (address !== undefined && nameIn(address) !== undefined)
      given.index_id = await scope.run((context) => indexIdAt(service, context, address));
  });
}
