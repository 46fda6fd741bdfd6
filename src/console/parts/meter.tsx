import type { UsageSummary } from '../api.ts';
import { count } from '../format.ts';

/** Usage against the limits that end a tenant's work. */
export function UsageMeters({ of: { usage, limits, unlimited = [] } }: { of: UsageSummary }) {
  const limitOf = (name: (typeof unlimited)[number]): bigint | undefined =>
    unlimited.includes(name) ? undefined : BigInt(limits[name]);
  return (
    <section class="cards" aria-label="Usage against limits">
      <Meter
        name="Input tokens this month"
        used={BigInt(usage.input_tokens)}
        limit={limitOf('input_tokens')}
      />
      <Meter name="Stored documents" used={BigInt(usage.documents)} limit={limitOf('documents')} />
    </section>
  );
}

/** Without a limit it is a number alone. */
function Meter({ name, used, limit }: { name: string; used: bigint; limit: bigint | undefined }) {
  if (limit === undefined)
    return (
      <p class="row ends meter">
        <span>{name}</span>
        <span class="quiet number">{count(used)} (unlimited)</span>
      </p>
    );
  const share = limit === 0n ? 1 : Number((10_000n * used) / limit) / 10_000;
  const percent = Math.min(100, 100 * share);
  return (
    <div class="stacked meter">
      <p class="row ends">
        <span>{name}</span>
        <span class="quiet number">
          {count(used)} of {count(limit)} ({(100 * share).toFixed(1)}%)
        </span>
      </p>
      <div
        class="track"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
      >
        <span class={share > 0.9 ? 'near' : undefined} style={{ width: `${percent}%` }} />
      </div>
    </div>
  );
}
