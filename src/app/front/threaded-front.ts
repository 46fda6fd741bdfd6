/**
 * Serves the API in worker threads. All listen on one port (`SO_REUSEPORT`), and the kernel divides connections among them. This
 * thread keeps the service, so limits and usage are counted once. A thread that ends early is a defect of the process, and while
 * one hangs `/healthz` has no answer.
 */
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { largeBodyRoom } from '../../http/app.ts';
import { defaultHttpTimeouts, type TlsIdentity } from '../../http/protocol/listener.ts';
import { RecentActivity } from '../../http/recent-activity.ts';
import type { Service } from '../../service/contract.ts';
import { Link } from '../../service/threads/link.ts';
import { hostService } from '../../service/threads/remote-service.ts';
import type { MetricsSnapshot } from '../../observation/metrics.ts';
import { assertPortIsFree } from '../ports.ts';
import type { Front, FrontOptions } from './front.ts';
import type { FrontThreadData } from './front-thread.ts';
import { hostState, type SharedState } from './shared-state.ts';

interface FrontThread {
  readonly link: Link;
  end(): Promise<unknown>;
}

export async function openThreadedFront({
  service,
  metrics,
  observeTenant,
  tls: given,
  ...rest
}: Pick<FrontOptions, 'config' | 'metrics' | 'node' | 'tls' | 'threads'> & {
  readonly service: Service;
  readonly observeTenant: SharedState['observeTenant'];
}): Promise<Front> {
  // A client resumes its TLS session on any thread.
  const ticketKeys = randomBytes(48);
  const tls = given && { ...given, ticketKeys };
  const openConnections = new Int32Array(new SharedArrayBuffer(4));
  const data: FrontThreadData = { ...rest, tls, openConnections };
  let beats: Promise<unknown> | undefined;
  const state: SharedState = {
    room: largeBodyRoom(defaultHttpTimeouts),
    activity: new RecentActivity(),
    observeTenant,
    // One for all who ask meanwhile, because anybody may.
    beat: () => (beats ??= settled().finally(() => (beats = undefined))),
  };
  // A reply comes after all that its thread had to say before.
  const settled = (): Promise<unknown> => Promise.allSettled(threads.map(({ link }) => link.call('settled')));
  const threads = Array.from({ length: rest.threads }, () =>
    startThread(data, hostService(service, settled), state),
  );
  const all = (name: string, ...input: readonly unknown[]): Promise<unknown[]> =>
    Promise.all(threads.map(({ link }) => link.call(name, ...input)));
  const tellAll = (name: string, ...input: readonly unknown[]): void => {
    for (const { link } of threads) link.tell(name, ...input);
  };
  const close = async (): Promise<void> => {
    await Promise.allSettled(threads.map(({ link }) => link.call('close')));
    await Promise.all(threads.map((thread) => thread.end()));
  };
  try {
    await all('opened');
  } catch (error) {
    await close();
    throw error;
  }
  metrics.include(() => all('metrics') as Promise<MetricsSnapshot[]>);
  return {
    async listen({ host, port }) {
      // The kernel would let another service share the port, too.
      await assertPortIsFree({ host, port });
      const [first, ...others] = threads;
      const address = (await first!.link.call('listen', { host, port, reusePort: true })) as string;
      const place = { host, port: port || Number(/\d+$/.exec(address)), reusePort: true };
      await Promise.all(others.map(({ link }) => link.call('listen', place)));
      return address;
    },
    renewIdentity: (identity: TlsIdentity) => tellAll('renewIdentity', { ...identity, ticketKeys }),
    drain: () => tellAll('drain'),
    cut: () => tellAll('cut'),
    close,
  };
}

function startThread(
  workerData: FrontThreadData,
  host: ReturnType<typeof hostService>,
  state: SharedState,
): FrontThread {
  // TypeScript in the repository, JavaScript in the published package.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./front-thread.${extension}`, import.meta.url), { workerData });
  const held = hostState(state, () => link);
  const link: Link = new Link(worker, { ...host.handlers, ...held.handlers });
  let ended = false;
  const end = (reason: Error): void => {
    if (ended) return;
    ended = true;
    link.close(reason);
    host.close();
    held.close();
    throw reason;
  };
  worker.on('error', (error) => end(error as Error));
  worker.on('exit', () => end(new Error('this is a bug: a thread of the API has ended')));
  return {
    link,
    end() {
      ended = true;
      return worker.terminate();
    },
  };
}
