/** The provider and the time of the nodes of a graph, from the runtime's own profile of one run, summed by operator. */
import { InferenceSession } from 'onnxruntime-node';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { scratchFolder } from '../lib/endings.ts';
import type { Feeds, SessionSettings } from '../lib/model/onnxruntime-session.ts';

export interface NodeTimes {
  readonly provider: string;
  readonly operator: string;
  readonly nodes: number;
  /** Until a node returned. On a GPU a node returns when its kernels were started, not when they ended. */
  readonly milliseconds: number;
}

const profileEvents = z.array(
  z.object({
    cat: z.string(),
    dur: z.number().default(0),
    args: z.object({ op_name: z.string().optional(), provider: z.string().optional() }).default({}),
  }),
);

/** The second run counts: the first one also reserves memory. */
export async function nodesOf({ graphFile, device }: SessionSettings, feeds: Feeds): Promise<NodeTimes[]> {
  using folder = scratchFolder('nodes');
  const session = await InferenceSession.create(graphFile, {
    executionProviders:
      device.provider === 'cuda' ? [{ name: 'cuda', deviceId: device.index }, 'cpu'] : ['cpu'],
    intraOpNumThreads: device.threads,
    enableProfiling: true,
    profileFilePrefix: path.join(folder.path, 'profile'),
  });
  await session.run(feeds);
  await session.run(feeds);
  session.endProfiling();
  await session.release();
  const [file = ''] = readdirSync(folder.path);
  const events = profileEvents.parse(JSON.parse(readFileSync(path.join(folder.path, file), 'utf8')));
  const nodes = events.filter(({ cat }) => cat === 'Node');
  return summed(nodes.slice(nodes.length / 2).map(({ dur, args }) => ({ ...args, microseconds: dur })));
}

function summed(
  nodes: readonly {
    readonly provider?: string | undefined;
    readonly op_name?: string | undefined;
    readonly microseconds: number;
  }[],
): NodeTimes[] {
  const found = new Map<string, NodeTimes>();
  for (const { provider = 'unknown', op_name: operator = 'unknown', microseconds } of nodes) {
    const key = `${provider} ${operator}`;
    const before = found.get(key) ?? { provider, operator, nodes: 0, milliseconds: 0 };
    found.set(key, {
      ...before,
      nodes: before.nodes + 1,
      milliseconds: before.milliseconds + microseconds / 1000,
    });
  }
  return [...found.values()].toSorted((a, b) => b.milliseconds - a.milliseconds);
}
