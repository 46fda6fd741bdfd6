/**
 * Many clients write, delete and search at three nodes that merge, while the object store fails, connections to the
 * database are cut, and nodes begin anew without a cache. Every search is compared with the history.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningPostgres } from '../../../deploy/local/postgres.ts';
import type { RunningSeaweed } from '../../../deploy/local/seaweedfs.ts';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { IndexHead } from '../../../src/index-state.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { rounds } from '../../rounds.ts';
import { openNodeStage, type Node, type NodeStage } from '../../support/cluster/node-stage.ts';
import { serversMs, startTestPostgres, startTestSeaweed } from '../../support/cluster/servers.ts';
import { seededRandom } from '../../support/seeded-random.ts';
import { documentAt } from '../../support/stages/index-stage.ts';
import { History } from './history.ts';

let postgres: RunningPostgres;
let weed: RunningSeaweed;
beforeAll(async () => {
  [postgres, weed] = await Promise.all([startTestPostgres(), startTestSeaweed()]);
}, serversMs);
afterAll(async () => {
  await Promise.all([postgres.stop(), weed.stop()]);
});

const clients = 8;
const documentsOfClient = 3;
const operationsOfClient = rounds({ short: 40, nightly: 25_000 });
const faultPauseMs = 150;

/** Objects are not put or not fetched, or late, one time in ten. */
function unreliable(real: ObjectStore, random: () => number): ObjectStore {
  const perhaps = async <T>(work: () => Promise<T>): Promise<T> => {
    const chance = random();
    if (chance < 0.05) throw new ServiceError('service_unavailable', 'the object store fails');
    if (chance < 0.1) await pause(50);
    return work();
  };
  return {
    ...real,
    putFile: (key, file) => perhaps(() => real.putFile(key, file)),
    getFile: (key, file, expected) => perhaps(() => real.getFile(key, file, expected)),
  };
}

/** Looks at the head now and then only, and takes it for what the node has already: what the checker must find. */
function late(real: ClusterCatalog): ClusterCatalog {
  let known: IndexHead | undefined;
  let reads = 0;
  return {
    ...real,
    async changesSince(input) {
      const changes = await real.changesSince(input);
      if (typeof changes === 'object') known = changes;
      return changes;
    },
    readHead(indexId) {
      reads += 1;
      return known === undefined || reads % 4 === 0 ? real.readHead(indexId) : Promise.resolve(known);
    },
  };
}

async function run(
  stage: NodeStage,
  options: { readonly seed: number; readonly faults: boolean; readonly catalog?: typeof late },
): Promise<History> {
  const random = seededRandom(options.seed);
  const history = new History();
  const newNode = (): Promise<Node> =>
    stage.newNode({
      settings: { sealedSegmentsMax: 3, wasteAgeMsMax: 0 },
      ...(options.faults ? { objects: (real: ObjectStore) => unreliable(real, random) } : {}),
      ...(options.catalog === undefined ? {} : { catalog: options.catalog }),
    });
  const nodes = [await newNode(), await newNode(), await newNode()];
  const any = (): Node => nodes[Math.floor(random() * nodes.length)]!;

  const write = async (docId: string): Promise<void> => {
    const stored = random() < 0.7;
    const { place, answered } = history.begin(docId, stored);
    const document = { ...documentAt(docId, place % 8), metadata: { version: place } };
    await (stored ? any().upsert([document]) : any().remove(docId));
    answered();
  };
  const search = async (): Promise<void> => {
    const beganAt = history.now();
    const found = await any().found();
    const versions = found.map((text) => {
      const [docId = '', metadata = ''] = text.split(' ');
      return [docId, (JSON.parse(metadata) as { version: number }).version] as const;
    });
    expect(new Set(versions.map(([docId]) => docId)).size).toBe(versions.length);
    history.check(beganAt, new Map(versions));
  };
  const work = { left: clients };
  const failures = { count: 0 };
  const client = async (own: number): Promise<void> => {
    for (let operation = 0; operation < operationsOfClient; operation += 1) {
      const docId = `d${own}-${Math.floor(random() * documentsOfClient)}`;
      const refused = (error: unknown): void => {
        if (!options.faults || !(error instanceof ServiceError) || error.code !== 'service_unavailable')
          throw error;
        failures.count += 1;
      };
      await (random() < 0.5 ? write(docId) : search()).catch(refused);
    }
    work.left -= 1;
  };
  const faults = async (): Promise<void> => {
    const operator = new Client({ connectionString: stage.url });
    await operator.connect();
    while (options.faults && work.left > 0) {
      await pause(faultPauseMs);
      if (random() < 0.5) {
        await operator.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5`,
        );
      } else {
        const place = Math.floor(random() * nodes.length);
        const old = nodes[place]!;
        nodes[place] = await newNode().catch(() => old);
      }
    }
    await operator.end();
  };
  try {
    await Promise.all([faults(), ...Array.from({ length: clients }, (_value, own) => client(own))]);
  } finally {
    work.left = 0;
  }
  console.info(
    `seed ${options.seed}: ${history.operations} writes, ${history.searches} searches, ${failures.count} refused`,
  );
  return history;
}

it('holds at every node', { timeout: 4 * 3_600_000 }, async () => {
  await using stage = await openNodeStage(postgres, weed);
  const seed = Date.now() % 1_000_000;
  const history = await run(stage, { seed, faults: false });
  expect(history.searches).toBeGreaterThan(10);
});

it(
  'holds while stores fail, connections are cut and nodes begin anew',
  { timeout: 4 * 3_600_000 },
  async () => {
    await using stage = await openNodeStage(postgres, weed);
    const seed = Date.now() % 1_000_000;
    const history = await run(stage, { seed, faults: true });
    expect(history.searches).toBeGreaterThan(10);
  },
);

it('finds a node that does not look at the head', async () => {
  await using stage = await openNodeStage(postgres, weed);
  await expect(run(stage, { seed: 1, faults: false, catalog: late })).rejects.toThrow(/a search saw version/);
});
