import { afterAll, beforeAll } from 'vitest';
import { rounds } from '../../rounds.ts';
import type { NodeStage } from '../../support/cluster/node-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { newIndex } from '../../support/stages/catalog-fixture.ts';
import { tend, unlike } from '../../support/stages/index-stage.ts';
import { describeIndex } from '../conformance.ts';

const servers = useStageServers();
let shared: NodeStage;
beforeAll(async () => {
  shared = await servers.openStage();
});
afterAll(() => shared[Symbol.asyncDispose]());

describeIndex('nodes', {
  async open(settings, catalog) {
    const { id: indexId } = await newIndex(shared.catalog, shared.tenantId);
    const node = await shared.newNode({ indexId, settings, ...(catalog && { catalog }) });
    return {
      ...node,
      ...node.driver,
      repeats: node.storage.repeats,
      corrupt: [],
      mergeAll: () => tend(node.index()),
      async leftovers() {
        const changes = await node.catalog.changesSince({ indexId, generation: -1, segmentIds: [] });
        const named = typeof changes === 'object' ? changes.segments.map(({ id }) => id) : [];
        const { segments } = node.index().statistics();
        return unlike(
          segments.map(({ segmentId }) => segmentId),
          named,
        ).map(String);
      },
      // Nothing of a write that was cut off can be named: it lies in the cache alone.
      tear: async () => undefined,
      [Symbol.asyncDispose]: () => node.close(),
    };
  },
  steps: {
    durable: 'putFile',
    commit: 'commitUpserts',
    swap: 'swapMerged',
    merge: ['createSegment', 'copyRecords', 'seal', 'putFile', 'swapMerged'],
    look: ['readHead', 'changesSince'],
  },
  pinsSnapshots: false,
  modelRuns: rounds({ short: 10, nightly: 40 }),
});
