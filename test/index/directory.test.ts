import { appendFile } from 'node:fs/promises';
import { blobsOf, openStage, segmentsOf, unlike } from '../support/stages/index-stage.ts';
import { useHost } from '../support/stages/use-host.ts';
import { describeIndex } from './conformance.ts';

const host = useHost();

describeIndex('a directory', {
  async open(settings, wrap = (catalog) => catalog) {
    const stage = await openStage({ ...host, catalog: wrap(host.catalog) }, settings);
    return {
      ...stage,
      mergeAll: () => stage.index().mergeAll(),
      leftovers: async () => unlike(await blobsOf(stage), await segmentsOf(stage)),
      /** Writes bytes after the last record of the active segments. */
      async tear(garbage) {
        const { segments } = await stage.catalog.loadIndexState(stage.indexId);
        for (const { blob, state } of segments) {
          if (state === 'active') await appendFile(await stage.blobs.open(blob), garbage);
        }
      },
    };
  },
  steps: {
    durable: 'sync',
    commit: 'commitUpsert',
    swap: 'swapSegments',
    merge: [
      'createSegment',
      'copyRecords',
      'sync',
      'seal',
      'sealSegment',
      'swapSegments',
      'forgetDeadVersions',
    ],
    look: ['loadIndexState'],
  },
  pinsSnapshots: true,
  modelRuns: 40,
});
