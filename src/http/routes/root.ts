import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { addition } from '../schemas/addition.ts';
import { answers } from './answers.ts';

const Root = z
  .strictObject({
    name: z.literal('maxsimd'),
    console: z.string().optional(),
    docs: z.string(),
    openapi: z.string(),
  })
  .meta({
    id: 'Root',
    description: 'Addresses relative to this one. `console` is absent if the console is off.',
  });

/** For a person who opens the address of the service. */
export function rootRoute(hasConsole: boolean): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/', {
      schema: {
        operationId: 'root',
        summary: 'Where to go from here',
        description: 'The console, the page of this description, and the description itself.',
        tags: ['reference'],
        security: [],
        ...addition,
        response: answers({ 200: [Root, 'Relative addresses.'] }, []),
      },
      handler: async () => ({
        name: 'maxsimd',
        ...(hasConsole ? { console: 'console' } : {}),
        docs: 'docs',
        openapi: 'openapi.json',
      }),
    });
  };
}
