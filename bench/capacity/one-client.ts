/** Searches of one client, one after another. */
import { Connection, requestText } from '../lib/service/connection.ts';
import type { Target } from '../lib/service/target.ts';
import { maximum, percentiles } from '../lib/statistics.ts';
import type { OneClient } from './report.ts';

/** The first ones meet cold caches and are not reported. */
const warmUpShare = 0.1;

export async function searchOneByOne(
  { url, apiKey, indexId }: Pick<Target, 'url' | 'apiKey' | 'indexId'>,
  queries: readonly string[],
  searches: number,
): Promise<OneClient> {
  const route = new URL(`/v1/indexes/${indexId}/search`, url);
  const connection = new Connection(url);
  try {
    const times: number[] = [];
    for (let at = -Math.ceil(searches * warmUpShare); at < searches; at++) {
      const query = queries.at(at % queries.length) ?? '';
      const { totalMs } = await connection.exchange(
        requestText(route, { query }, { authorization: `Bearer ${apiKey}` }),
      );
      if (at >= 0) times.push(totalMs);
    }
    return { searches, latency_ms: { ...percentiles(times, 50, 90, 99), max: maximum(times) } };
  } finally {
    connection.close();
  }
}
