import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { ServiceError } from '../../errors.ts';
import type { Service } from '../../service/contract.ts';
import { isServing } from '../../service/readiness.ts';
import { answers } from './answers.ts';
import { Health, ReadinessBody } from '../schemas/health.ts';

export function healthRoutes(
  service: Service,
  drain: AbortSignal,
  beat: () => Promise<unknown> = async () => undefined,
): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/healthz', {
      config: { servesWhileDraining: true },
      schema: {
        operationId: 'health',
        summary: 'Is the process alive?',
        description: 'Checks nothing else.',
        tags: ['health'],
        security: [],
        response: answers({ 200: [Health, 'Alive.'] }, []),
      },
      handler: async () => {
        await beat();
        return { status: 'ok' };
      },
    });

    app.get('/readyz', {
      config: { servesWhileDraining: true },
      schema: {
        operationId: 'readiness',
        summary: 'Can the service answer requests?',
        description:
          'The catalog, an encoder and the disk must be usable, and the service must not be shutting down. If one of these fails, `issues` says which one and why.',
        tags: ['health'],
        security: [],
        response: answers({ 200: [ReadinessBody, 'Ready.'] }, ['service_unavailable']),
      },
      handler: async () => {
        const readiness = await service.readiness();
        const checks = drain.aborted ? { ...readiness.checks, draining: 'shutting down' } : readiness.checks;
        if (readiness.ready && !drain.aborted) return { status: 'ready', checks };
        const issues = Object.entries(checks)
          .filter(([, state]) => !isServing(state))
          .map(([path, message]) => ({ path, message, code: 'unready' }));
        throw new ServiceError('service_unavailable', 'not ready', { issues });
      },
    });
  };
}
