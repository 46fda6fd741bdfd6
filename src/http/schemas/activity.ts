import { z } from 'zod';
import { activityMinutes } from '../recent-activity.ts';
import { Count, Timestamp } from './fields.ts';

const Latency = z
  .number()
  .nullable()
  .meta({ description: 'Milliseconds, within a tenth. Null: no search was answered.' });

const SearchActivity = z
  .strictObject({
    searches: Count.meta({ description: 'Answered requests, the errors among them.' }),
    errors: Count.meta({ description: 'Requests that were answered with 4xx or 5xx.' }),
    p50_ms: Latency,
    p99_ms: Latency,
  })
  .meta({ id: 'SearchActivity' });

const IndexActivity = z
  .strictObject({
    index_id: z.uuid(),
    minutes: z.array(SearchActivity).length(activityMinutes).meta({ description: 'Oldest first.' }),
    hour: SearchActivity,
  })
  .meta({ id: 'IndexActivity' });

export const Activity = z
  .strictObject({
    node: z
      .string()
      .nullable()
      .meta({ description: 'The node of a cluster that answers, and counts its own searches.' }),
    from: Timestamp.meta({
      description: 'The start of the first minute. The last minute is still going on.',
    }),
    data: z.array(IndexActivity).meta({ description: 'Indexes without a search are left out.' }),
  })
  .meta({ id: 'Activity' });
