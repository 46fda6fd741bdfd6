import { z } from 'zod';

export const Health = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Health' });

const ReadinessChecks = z
  .strictObject({
    catalog: z.string(),
    encoder: z.string(),
    disk: z.string(),
    draining: z.string(),
    objects: z.string().optional(),
    limiter: z.string().optional(),
  })
  .meta({
    id: 'ReadinessChecks',
    description:
      'The state of each part: `ok`, or what is wrong. `objects` (the object store) and `limiter` exist only where several nodes share them. A `limiter` that is `degraded` does not make a node unready.',
  });

export const ReadinessBody = z
  .strictObject({ status: z.enum(['ready', 'unready']), checks: ReadinessChecks })
  .meta({ id: 'Readiness' });
