/** The last hour of an index, a minute a step: searches with their errors, and p50 and p99. */
import type { Activity } from '../api.ts';
import { count, many, milliseconds, timeOfDay } from '../format.ts';
import { PlotAxes } from './plot-axes.tsx';

type IndexActivity = Activity['data'][number];

const height = 40;
const minuteMs = 60_000;

export interface MinutePlotsProps {
  readonly of: IndexActivity;
  /** The start of the first minute, as the API writes times. */
  readonly from: string;
}

export function MinutePlots({ of: { minutes, hour }, from }: MinutePlotsProps) {
  const most = Math.max(1, ...minutes.map(({ searches }) => searches));
  const slowest = Math.max(1, ...minutes.map(({ p99_ms: p99 }) => p99 ?? 0));
  const searches = `${many(hour.searches, 'search', 'searches')}, ${many(hour.errors, 'error')}`;
  const latency = `p50 ${latencyOf(hour.p50_ms)}, p99 ${latencyOf(hour.p99_ms)}`;
  const startMs = Date.parse(from);
  const times = [0, minutes.length / 2, minutes.length].map((minute) =>
    timeOfDay(startMs + minuteMs * minute),
  );
  return (
    <section aria-label="Last hour" class="hour">
      <p>Last hour</p>
      <div class="plots">
        <figure class="plot">
          <figcaption>
            <span>Searches a minute</span>
            <span>{searches}</span>
          </figcaption>
          <PlotAxes top={count(most)} times={times}>
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
          </PlotAxes>
        </figure>
        <figure class="plot">
          <figcaption>
            <span>Latency</span>
            <span>{latency}</span>
          </figcaption>
          <PlotAxes top={milliseconds(slowest)} times={times}>
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
          </PlotAxes>
        </figure>
      </div>
    </section>
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
      const y = height - (height * value) / most;
      return `${at > 0 && values[at - 1] !== null ? 'L' : 'M'}${at} ${y.toFixed(2)}h1`;
    })
    .join('');
}
