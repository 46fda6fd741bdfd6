import type { Api } from '../api.ts';
import { DayPlot } from '../parts/day-plot.tsx';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { UsageMeters } from '../parts/meter.tsx';
import { count, day, daysAgo } from '../format.ts';
import { useLoaded } from '../work.ts';

const plottedDays = 30;

export function UsageView({ api }: { api: Api }) {
  const { result, failure } = useLoaded(() => api.usage());
  const from = daysAgo(plottedDays - 1);
  const days = useLoaded(() => api.usageDays(from));
  const plotted = days.result?.body.data;
  const summary = result?.body;
  return (
    <>
      <div>
        <h1>Usage</h1>
        {summary !== undefined && (
          <p class="quiet">
            {day(summary.period_start)} to {day(summary.period_end)} (UTC)
          </p>
        )}
      </div>
      <Failure of={failure ?? days.failure} />
      {summary !== undefined && (
        <>
          <UsageMeters of={summary} />
          <dl class="facts">
            <Fact name="Requests" value={count(summary.usage.requests)} />
            <Fact name="Searches" value={count(summary.usage.searches)} />
            <Fact name="Scores" value={count(summary.usage.scores)} />
            <Fact name="Documents upserted" value={count(summary.usage.document_upserts)} />
            <Fact name="Limit: requests a minute" value={count(summary.limits.requests_per_minute)} />
            <Fact name="Limit: requests at a time" value={count(summary.limits.max_concurrent_requests)} />
          </dl>
        </>
      )}
      {plotted !== undefined && (
        <div class="cards days">
          <DayPlot name="Input tokens" from={from} days={plotted} value={(of) => BigInt(of.input_tokens)} />
          <DayPlot name="Searches" from={from} days={plotted} value={(of) => BigInt(of.searches)} />
          <DayPlot name="Requests" from={from} days={plotted} value={(of) => BigInt(of.requests)} />
          <DayPlot
            name="Documents upserted"
            from={from}
            days={plotted}
            value={(of) => BigInt(of.document_upserts)}
          />
        </div>
      )}
    </>
  );
}
