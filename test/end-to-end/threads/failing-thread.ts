/** Imported first by a server of the tests: a thread that serves the API fails, or hangs, once the file `TEST_FAILING_THREAD` can be renamed. */
import { readFileSync, renameSync } from 'node:fs';
import { isMainThread, workerData } from 'node:worker_threads';

const file = process.env['TEST_FAILING_THREAD'] ?? '';
const servesApi = !isMainThread && 'openConnections' in (workerData as object);
if (servesApi) setInterval(failOnce, 10);

/** One thread alone can rename it. */
function failOnce(): void {
  try {
    renameSync(file, `${file}.taken`);
  } catch {
    return;
  }
  while (readFileSync(`${file}.taken`, 'utf8') === 'hang');
  throw new Error('this is a bug: planted');
}
