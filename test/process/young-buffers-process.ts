/** Makes 2 GiB of buffers that nobody keeps, 64 KiB each, and prints how often the whole heap was collected meanwhile. With an argument, after `collectYoungBuffers`. */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { collectYoungBuffers } from '../../src/process/process-tuning.ts';

if (process.argv.length > 2) collectYoungBuffers();
let wholeHeap = 0;
new PerformanceObserver((list) => {
  const collections = list.getEntries() as (PerformanceEntry & {
    readonly detail: { readonly kind: number };
  })[];
  for (const { detail } of collections)
    if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) wholeHeap += 1;
}).observe({ entryTypes: ['gc'] });
for (let made = 0; made < 32_768; made += 1) {
  Buffer.alloc(65_536);
  if (made % 4 === 0) await turn();
}
await turn();
console.log(wholeHeap);
