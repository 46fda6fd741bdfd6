import type { Api } from '../api.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { count, day } from '../format.ts';
import { useLoaded } from '../work.ts';

export function UsageView({ api }: { api: Api }) {
  const { result, failure } = useLoaded(() => api.usage());
  const summary = result?.body;
  return (
    <>
      <h1>Usage</h1>
      <Failure of={failure} />
      {summary !== undefined && (
        <>
          <p>
            {day(summary.period_start)} to {day(summary.period_end)} (UTC)
          </p>
          <div class="meters">
            <Meter
              name="Input tokens this month"
              used={BigInt(summary.usage.input_tokens)}
              limit={BigInt(summary.limits.input_tokens)}
            />
            <Meter
              name="Stored documents"
              used={BigInt(summary.usage.documents)}
              limit={BigInt(summary.limits.documents)}
            />
          </div>
          <dl class="facts">
            <Fact name="Requests" value={count(summary.usage.requests)} />
            <Fact name="Searches" value={count(summary.usage.searches)} />
            <Fact name="Scores" value={count(summary.usage.scores)} />
            <Fact name="Documents upserted" value={count(summary.usage.document_upserts)} />
            <Fact name="Requests a minute, at most" value={count(summary.limits.requests_per_minute)} />
            <Fact name="Requests at a time, at most" value={count(summary.limits.max_concurrent_requests)} />
          </dl>
        </>
      )}
    </>
  );
}

function Meter({ name, used, limit }: { name: string; used: bigint; limit: bigint }) {
  const share = limit === 0n ? 1 : Number((10_000n * used) / limit) / 10_000;
  return (
    <div class="meter">
      <p>
        <strong>{name}</strong>
        <span>
          {count(used)} of {count(limit)} ({(100 * share).toFixed(1)}%)
        </span>
      </p>
      <div
        class="track"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.min(100, 100 * share)}
      >
        <span class={share > 0.9 ? 'near' : undefined} style={{ width: `${Math.min(100, 100 * share)}%` }} />
      </div>
    </div>
  );
}
