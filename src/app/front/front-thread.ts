/** Entry of a worker thread that serves the API. The service itself is in the main thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { assertInvariant } from '../../errors.ts';
import { createLogger } from '../../observation/logging.ts';
import { createMetrics } from '../../observation/metrics.ts';
import { Link } from '../../service/threads/link.ts';
import { remoteService } from '../../service/threads/remote-service.ts';
import { openFront, type FrontOptions, type ListenPlace } from './front.ts';
import { remoteState } from './shared-state.ts';

export type FrontThreadData = Pick<FrontOptions, 'config' | 'node' | 'tls' | 'threads' | 'openConnections'>;

assertInvariant(parentPort !== null, 'the API runs in a worker thread');
const data = workerData as FrontThreadData;
const metrics = createMetrics('thread');
const { handlers, ...state } = remoteState(() => link);
const link: Link = new Link(parentPort, {
  ...handlers,
  opened: async () => void (await opening),
  listen: async (place: ListenPlace) => (await opening).listen(place),
  renewIdentity: async (identity: NonNullable<FrontThreadData['tls']>) =>
    (await opening).renewIdentity(identity),
  drain: async () => (await opening).drain(),
  cut: async () => (await opening).cut(),
  close: async () => (await opening).close(),
  metrics: () => metrics.snapshot(),
  settled: () => undefined,
});
const opening = openFront({
  ...data,
  ...state,
  metrics,
  logger: createLogger({ level: data.config.MAXSIMD_LOG_LEVEL }),
  service: remoteService(link),
});
// The main thread asks for the failure.
opening.catch(() => undefined);
