/** The last hour of an index, a minute a step: searches with their errors, and p50 and p99. */
import type { Activity } from '../api.ts';
import { many, milliseconds } from '../format.ts';

type IndexActivity = Activity['data'][number];

const height = 40;

export function MinutePlots({ of: { minutes, hour } }: { of: IndexActivity }) {
  const most = Math.max(1, ...minutes.map(({ searches }) => searches));
  const slowest = Math.max(1, ...minutes.map(({ p99_ms: p99 }) => p99 ?? 0));
  const searches = `${many(hour.searches, 'search', 'searches')}, ${many(hour.errors, 'error')}`;
  const latency = `p50 ${latencyOf(hour.p50_ms)}, p99 ${latencyOf(hour.p99_ms)}`;
  return (
    <div class="plots">
      <figure class="plot">
        <figcaption>
          <span>{searches}</span>
        </figcaption>
        <svg
          viewBox={`0 0 ${minutes.length} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={searches}
        >
          {minutes.map((minute, at) => {
            const tall = (height * minute.searches) / most;
            const failed = (height * minute.errors) / most;
            return (
              <g key={at}>
                <rect x={at} y={height - tall} width={0.8} height={tall} />
                <rect class="error" x={at} y={height - failed} width={0.8} height={failed} />
              </g>
            );
          })}
        </svg>
      </figure>
      <figure class="plot">
        <figcaption>
          <span>{latency}</span>
        </figcaption>
        <svg
          viewBox={`0 0 ${minutes.length} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={latency}
        >
          <path
            class="upper"
            d={steps(
              minutes.map(({ p99_ms: p99 }) => p99),
              slowest,
            )}
          />
          <path
            d={steps(
              minutes.map(({ p50_ms: p50 }) => p50),
              slowest,
            )}
          />
        </svg>
      </figure>
    </div>
  );
}

export function latencyOf(value: number | null): string {
  return value === null ? '–' : milliseconds(value);
}

/** A line of one step for each minute, broken where a minute has no value. */
function steps(values: readonly (number | null)[], most: number): string {
  return values
    .map((value, at) => {
      if (value === null) return '';
      const y = height - (0.9 * height * value) / most;
      return `${at > 0 && values[at - 1] !== null ? 'L' : 'M'}${at} ${y.toFixed(2)}h1`;
    })
    .join('');
}
