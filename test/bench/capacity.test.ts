/** The parts of the capacity benchmark that decide what it says. */
import { describe, expect, it } from 'vitest';
import type { StepResources } from '../../bench/capacity/observe.ts';
import { renderHtml, type CapacityReport } from '../../bench/capacity/report.ts';
import { parseMix, schedule } from '../../bench/capacity/schedule.ts';
import { verdict } from '../../bench/capacity/verdict.ts';

const resources = (changes: Partial<StepResources> = {}): StepResources => ({
  stagesMs: {},
  apiCores: 0.1,
  encoderCores: 0.2,
  eventLoopDelayP99Ms: undefined,
  diskBytesPerSecond: 0,
  gpuUtilisation: undefined,
  ...changes,
});

describe('a schedule', () => {
  const options = { ratePerSecond: 200, durationMs: 20_000, mix: parseMix('search=3,upsert=1'), seed: 7 };

  it('offers the rate in the shares asked for, in order of time', () => {
    const arrivals = schedule(options);
    // Five standard deviations of a Poisson count.
    expect(Math.abs(arrivals.length - 4000)).toBeLessThan(5 * Math.sqrt(4000));
    const searches = arrivals.filter(({ operation }) => operation === 'search').length;
    expect(searches / arrivals.length).toBeCloseTo(0.75, 1);
    expect(arrivals.some(({ operation }) => operation === 'score')).toBe(false);
    expect(arrivals.map(({ dueMs }) => dueMs)).toEqual(
      arrivals.map(({ dueMs }) => dueMs).toSorted((a, b) => a - b),
    );
  });

  it('is the same for a seed and another for another', () => {
    expect(schedule(options)).toEqual(schedule(options));
    expect(schedule({ ...options, seed: 8 })).not.toEqual(schedule(options));
  });

  it.each(['', 'search', 'search=-1', 'walk=1', 'search=0'])('refuses the mix "%s"', (mix) => {
    expect(() => parseMix(mix)).toThrow(/bad mix/);
  });
});

describe('the verdict', () => {
  const lowest = resources({ stagesMs: { 'search encode': 5, 'search engine': 2 } });
  const input = { lowest, cores: 2, sendLagMsMax: 1, targetP99Ms: 100 };

  it('names nothing when every rate met the target', () => {
    expect(verdict({ ...input, failing: undefined }).resource).toBe('none');
  });

  it('names the resource whose stage grew most', () => {
    const engine = resources({ stagesMs: { 'search encode': 9, 'search engine': 80 } });
    expect(verdict({ ...input, failing: engine }).resource).toBe('engine');
    const encoder = resources({ stagesMs: { 'search encode': 90, 'search engine': 3 } });
    expect(verdict({ ...input, failing: encoder }).resource).toBe('encoder');
  });

  it('names the event loop when the api process uses up its core', () => {
    expect(verdict({ ...input, failing: resources({ apiCores: 0.97 }) }).resource).toBe('event loop');
  });

  it('names the load generator when it was late itself', () => {
    expect(verdict({ ...input, sendLagMsMax: 60, failing: resources() }).resource).toBe('load generator');
  });
});

describe('the page', () => {
  it('is self-contained and escapes what it quotes', () => {
    const report: CapacityReport = {
      environment: {
        cpu: '<cpu>',
        cores: 2,
        memory_bytes: 1,
        kernel: 'auto',
        threads: [2],
        commit: 'abc',
        command: 'npm run bench -- capacity --mix "search=1"',
        node: 'v24',
        date: '2026-01-01T00:00:00.000Z',
      },
      settings: {
        mix: parseMix('search=1'),
        p99_ms: 100,
        step_seconds: 1,
        documents: 1,
        model: 'm/1',
        seed: 1,
      },
      rows: [
        {
          rate_per_second: 5,
          requests: 5,
          failed: 0,
          answered_per_second: 5,
          latency_ms: { p50: 1, p90: 2, p99: 3, max: 4 },
          by_operation: {},
          met_target: true,
          send_lag_ms_max: 0,
          resources: resources({ stagesMs: { '/v1/indexes/:index_id/search encode': 5 } }),
        },
      ],
      capacity_per_second: 5,
      verdict: { resource: 'none', reason: 'every rate that was tried met the target' },
      interrupted: false,
      ratios: {},
    };
    const page = renderHtml(report);
    expect(page).toContain('&lt;cpu&gt;');
    expect(page).toContain('search encode');
    expect(page).not.toMatch(/https?:\/\/|<script|<link/);
  });
});
