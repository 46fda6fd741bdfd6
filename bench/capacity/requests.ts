/** The requests of a schedule, in shares for the senders. */
import type { Target } from '../lib/service/target.ts';
import type { Texts } from '../lib/texts.ts';
import type { RequestBody } from './load.ts';
import type { Arrival } from './schedule.ts';
import type { Share } from './senders.ts';

const timeoutMs = 60_000;

/** Each share is of one target, and all targets have as many. `outstandingMax` counts the open requests of all shares together. */
export function sharesOf({
  arrivals,
  targets,
  texts,
  count,
  outstandingMax,
}: {
  readonly arrivals: readonly Arrival[];
  readonly targets: readonly Target[];
  readonly texts: Texts;
  readonly count: number;
  readonly outstandingMax: number;
}): readonly Share[] {
  return Array.from({ length: count }, (_, at) => {
    const target = targets[at % targets.length]!;
    return {
      url: target.url,
      apiKey: target.apiKey,
      requests: arrivals
        .filter((__, place) => place % count === at)
        .map((arrival) => ({
          operation: arrival.operation,
          dueMs: arrival.dueMs,
          ...bodyOf(arrival, target, texts),
        })),
      outstandingMax: Math.ceil(outstandingMax / count),
      timeoutMs,
    };
  });
}

/** New documents replace stored ones, so that the index keeps its size. */
function bodyOf({ operation, pick }: Arrival, target: Target, { documents, queries }: Texts): RequestBody {
  const at = Math.floor(pick * documents.length);
  const query = queries[Math.floor(pick * queries.length)] ?? '';
  const textAt = (position: number): string => documents[position % documents.length] ?? '';
  if (operation === 'search') return post(`/v1/indexes/${target.indexId}/search`, { query });
  if (operation === 'upsert') {
    return post(`/v1/indexes/${target.indexId}/documents`, {
      documents: [{ doc_id: `document-${at}`, text: textAt(at) }],
    });
  }
  return post('/v1/score', {
    query,
    documents: [0, 1, 2, 3, 4].map((next) => ({ doc_id: String(next), text: textAt(at + next) })),
  });
}

function post(route: string, body: unknown): RequestBody {
  return { path: route, body: JSON.stringify(body) };
}
