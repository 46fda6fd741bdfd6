/** A process of the load (`senders.ts`). Its parent sends it a share, says when to begin, and may say when to stop. */
import { sum } from '../lib/statistics.ts';
import { runLoad } from './load.ts';
import type { FromSender, Share, ToSender } from './senders.ts';

/** Above so many requests a second, waiting by yielding turns would take more than a quarter of a core. */
const fineRateMax = 250;

let share: Share | undefined;
let stop = new AbortController();

function answer(message: FromSender): void {
  process.send?.(message);
}

async function run({ requests, ...service }: Share, signal: AbortSignal): Promise<void> {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  const load = await runLoad({
    ...service,
    arrivals: requests,
    bodyOf: (request) => request,
    coarse: requests.length * 1000 > fineRateMax * (requests.at(-1)?.dueMs ?? 0),
    signal,
  });
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(before);
  answer({ ...load, cores: sum([user, system]) / 1e6 / seconds });
}

process.on('message', (message: ToSender) => {
  if (message === 'stop') return stop.abort();
  if (message !== 'begin') {
    share = message;
    return answer('ready');
  }
  stop = new AbortController();
  return void run(share!, stop.signal);
});
process.once('disconnect', () => process.exit());
