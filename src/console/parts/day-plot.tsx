import type { UsageOfDay } from '../api.ts';
import { count, daysSince } from '../format.ts';
import { PlotAxes } from './plot-axes.tsx';

interface DayPlotProps {
  readonly name: string;
  /** The first day, `YYYY-MM-DD`; the last is today. */
  readonly from: string;
  readonly days: readonly UsageOfDay[];
  readonly value: (day: UsageOfDay) => bigint;
}

const height = 60;
const width = 10;
const gap = 2;

/** One bar for each day, in UTC. A table has the same values for screen readers. */
export function DayPlot({ name, from, days, value }: DayPlotProps) {
  const byDay = new Map(days.map((of) => [of.day, value(of)]));
  const bars = daysSince(from).map((day) => ({ day, value: byDay.get(day) ?? 0n }));
  const most = bars.reduce((highest, bar) => (bar.value > highest ? bar.value : highest), 0n);
  const total = bars.reduce((sum, bar) => sum + bar.value, 0n);
  return (
    <figure class="plot">
      <figcaption>
        <strong>{name}</strong>
        <span>
          {count(total)} in {bars.length} days, {count(most)} on the busiest day
        </span>
      </figcaption>
      <PlotAxes top={most === 0n ? '' : count(most)} times={[from, bars.at(-1)?.day ?? from]}>
        <svg
          viewBox={`0 0 ${bars.length * width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={name}
        >
          {bars.map((bar, place) => {
            const tall = most === 0n ? 0 : (height * Number((1_000n * bar.value) / most)) / 1_000;
            return (
              <rect key={bar.day} x={place * width} y={height - tall} width={width - gap} height={tall}>
                <title>{`${bar.day}: ${count(bar.value)}`}</title>
              </rect>
            );
          })}
        </svg>
      </PlotAxes>
      <table class="heard">
        <caption>{name} by day</caption>
        <tbody>
          {bars
            .filter((bar) => bar.value > 0n)
            .map((bar) => (
              <tr key={bar.day}>
                <th scope="row">{bar.day}</th>
                <td>{count(bar.value)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  );
}
