import { z } from 'zod';

export const Health = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Health' });

const ReadinessChecks = z
  .strictObject({
    catalog: z.string(),
    encoder: z.string(),
    disk: z.string(),
    draining: z.string(),
    objects: z.string().optional(),
  })
  .meta({
    id: 'ReadinessChecks',
    description:
      'By part: `ok`, or what is wrong. `objects`, the object store, is there when several nodes share it.',
  });

export const ReadinessBody = z
  .strictObject({ status: z.enum(['ready', 'unready']), checks: ReadinessChecks })
  .meta({ id: 'Readiness' });
