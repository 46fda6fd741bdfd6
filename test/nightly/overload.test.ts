/**
 * More requests than the service can answer, and then an hour of few. The phases: one caller alone; as many callers as keep the
 * service busy (the peak); three times that rate, whatever becomes of the answers; one caller again, until it is as fast as
 * before; and a share of the peak for long, while memory and descriptors are watched.
 */
import { readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { runLoad, type Sample } from '../../bench/capacity/load.ts';
import { parseMix, schedule } from '../../bench/capacity/schedule.ts';
import { childProcesses, memoryBytes } from '../../bench/lib/service/process-counters.ts';
import { maximum, mean, median, quantile, sum } from '../../bench/lib/statistics.ts';
import { packageTexts } from '../../bench/lib/texts.ts';
import { rounds } from '../rounds.ts';
import { useStage } from '../support/running/stage.ts';
import { makeIndex, put } from '../support/running/requests.ts';

const seconds = rounds({ short: 5, nightly: 300 });
const soakSeconds = rounds({ short: 10, nightly: 3600 });
const soakShare = 0.2;
const callersAtPeak = 16;
const factor = 3;
/** More than the encoders queue. A request that finds no place counts as unanswered. */
const outstandingMax = 3000;
const watchMs = rounds({ short: 500, nightly: 5000 });

/** Seconds on a busy machine say little, so the short form bounds less. */
const answeredShareMin = rounds({ short: 0.5, nightly: 0.9 });
const refusalMsMax = rounds({ short: 2000, nightly: 50 });
const recoverySecondsMax = 10;
/** Over the second half. */
const growthPerHourMax = rounds({ short: 50, nightly: 0.01 });

const stage = useStage();
const texts = packageTexts(50);
const said: string[] = [];
afterAll(() => console.log(said.join('\n')));

it('answers, refuses at once, recovers, and does not grow', { timeout: 7_200_000 }, async () => {
  const { id } = await makeIndex(stage.client);
  const documents = texts.map((text, at) => ({ doc_id: `document-${at}`, text }));
  await put(stage.client, id, documents.slice(0, 25));
  await put(stage.client, id, documents.slice(25));

  await callers(id, callersAtPeak, 2);
  const quietMs = median(await callers(id, 1, Math.min(5, seconds)));
  const peak = (await callers(id, callersAtPeak, seconds)).length / seconds;
  said.push(`alone ${quietMs.toFixed(1)} ms; peak ${peak.toFixed(1)} a second`);

  const { samples, answeredPerSecond } = await load(id, factor * peak, seconds, 'search=1');
  const refusals = samples.filter(({ status }) => status >= 400).map(({ latencyMs }) => latencyMs);
  said.push(
    `sent ${(factor * peak).toFixed(1)} a second: ${answeredPerSecond.toFixed(1)} answered (${((100 * answeredPerSecond) / peak).toFixed(0)}% of the peak), statuses ${statusesOf(samples)}`,
    `refusals: p50 ${median(refusals).toFixed(1)} ms, p99 ${quantile(refusals, 0.99).toFixed(1)} ms`,
  );
  expect(answeredPerSecond).toBeGreaterThanOrEqual(answeredShareMin * peak);
  expect(refusals.length).toBeGreaterThan(0);
  expect(median(refusals)).toBeLessThan(refusalMsMax);

  const recovery = await recoverySeconds(id, 2 * quietMs);
  said.push(`recovery: ${recovery} s`);
  expect(recovery).toBeLessThanOrEqual(recoverySecondsMax);

  const watched = watch();
  const soak = await load(id, soakShare * peak, soakSeconds, 'search=9,upsert=1');
  const { resident, descriptors } = await watched();
  const growth = growthPerHour(resident.slice(Math.floor(resident.length / 2)));
  said.push(
    `soak of ${soakSeconds} s: statuses ${statusesOf(soak.samples)}; resident ${resident.at(0)?.toFixed(0)} to ${resident.at(-1)?.toFixed(0)} MiB, ${(100 * growth).toFixed(2)}% an hour; descriptors ${descriptors.at(0)} to ${descriptors.at(-1)}`,
  );
  expect(soak.samples.filter(({ status }) => status !== 200)).toEqual([]);
  expect(growth).toBeLessThan(growthPerHourMax);
});

/** Each sends one search after another. Gives the times of those answered. */
async function callers(indexId: string, count: number, forSeconds: number): Promise<readonly number[]> {
  const times: number[] = [];
  const until = performance.now() + forSeconds * 1000;
  const one = async (place: number): Promise<void> => {
    for (let n = place; performance.now() < until; n += count) {
      const startedAt = performance.now();
      const { status } = await stage.client.search(indexId, { query: queryAt(n) });
      if (status === 200) times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, place) => one(place)));
  return times;
}

const queryAt = (at: number): string => texts[at % texts.length]!.slice(0, 80);

async function load(indexId: string, ratePerSecond: number, forSeconds: number, mix: string) {
  const durationMs = forSeconds * 1000;
  const endAt = performance.now() + durationMs;
  let answeredInTime = 0;
  const { samples } = await runLoad({
    url: stage.server.url,
    apiKey: stage.tenant.key,
    arrivals: schedule({ ratePerSecond, durationMs, mix: parseMix(mix), seed: 1 }),
    bodyOf: ({ operation, pick }) => {
      const at = Math.floor(pick * texts.length);
      // A stored document again, so that the index keeps its size.
      if (operation === 'upsert') {
        const body = JSON.stringify({ documents: [{ doc_id: `document-${at}`, text: texts[at] }] });
        return { path: `/v1/indexes/${indexId}/documents`, body };
      }
      return { path: `/v1/indexes/${indexId}/search`, body: JSON.stringify({ query: queryAt(at) }) };
    },
    outstandingMax,
    timeoutMs: 60_000,
    coarse: true,
    signal: new AbortController().signal,
    onSample: ({ status }) => {
      if (status === 200 && performance.now() <= endAt) answeredInTime += 1;
    },
  });
  return { samples, answeredPerSecond: answeredInTime / forSeconds };
}

function statusesOf(samples: readonly Sample[]): string {
  const counts: Record<string, number> = {};
  for (const { status } of samples) counts[status] = (counts[status] ?? 0) + 1;
  return JSON.stringify(counts);
}

/** Until the median of a second is at most so long. */
async function recoverySeconds(indexId: string, medianMsMax: number): Promise<number> {
  for (let second = 1; second <= recoverySecondsMax; second += 1) {
    const times = await callers(indexId, 1, 1);
    if (times.length > 0 && median(times) <= medianMsMax) return second;
  }
  return Infinity;
}

/** Own memory of the processes of the service in MiB, and their descriptors, until the function that it returns is called. */
function watch() {
  const resident: number[] = [];
  const descriptors: number[] = [];
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      const processes = [stage.server.pid, ...childProcesses(stage.server.pid)];
      resident.push(sum(processes.map((id) => memoryBytes(id, 'RssAnon'))) / 2 ** 20);
      descriptors.push(sum(processes.map((id) => readdirSync(`/proc/${id}/fd`).length)));
      await pause(watchMs);
    }
  })();
  return async () => {
    over.abort();
    await watching;
    return { resident, descriptors };
  };
}

/** The slope of the least squares' line over the mean, of values `watchMs` apart. */
function growthPerHour(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const square = maximum([1, sum(values.map((_, at) => (at - middle) ** 2))]);
  const slope = sum(values.map((value, at) => (at - middle) * value)) / square;
  return ((slope / mean(values)) * 3_600_000) / watchMs;
}
