/**
 * Upserts of nodes into one index. Records are written, sealed and uploaded, then committed. The nodes are in this process, each
 * with an engine, a cache and a catalog of its own. Documents are made token vectors, so no encoder takes part.
 */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { SharedServices } from '../../deploy/local/cluster.ts';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import { openPostgresCatalog } from '../../src/catalog/postgres/open-catalog.ts';
import { defaultIndexSettings } from '../../src/index/index-settings.ts';
import { openNodeIndex } from './node-index.ts';
import { month, type Target } from './target.ts';

export interface UpsertNode {
  /** One document of one chunk; returns when it is answered. */
  upsert(): Promise<void>;
  /** Transactions so far. */
  commits(): number;
  close(): Promise<void>;
}

const dim = 128;
const tokenVectors = 64;

export async function openUpsertNode(
  services: SharedServices,
  { tenantId, indexId }: Target,
  directory: string,
): Promise<UpsertNode> {
  await using opening = new AsyncDisposableStack();
  const opened = await openPostgresCatalog({
    url: services.environment['MAXSIMD_CATALOG_URL'] ?? '',
    keyPepper: new Uint8Array(32),
  });
  opening.defer(() => opened.close());
  let commits = 0;
  const catalog: ClusterCatalog = {
    ...opened,
    commitUpserts(upserts) {
      commits += 1;
      return opened.commitUpserts(upserts);
    },
  };
  const index = opening.use(
    await openNodeIndex(services, {
      catalog,
      indexId,
      dim,
      directory: path.join(directory, randomUUID()),
      threads: 1,
      settings: defaultIndexSettings,
    }),
  );
  const node = opening.move();
  return {
    commits: () => commits,
    close: () => node.disposeAsync(),
    upsert: () =>
      index.write(async (writer) => {
        const [versionId = 0] = await catalog.allocateIds(1);
        await writer.append({
          versionId,
          chunkRows: Uint32Array.of(tokenVectors),
          vectors: Int8Array.from({ length: tokenVectors * dim }, (_value, place) => (place * 37) % 127),
          scales: new Uint16Array(tokenVectors).fill(0x2000),
          terms: new Uint8Array(),
        });
        const { outcome } = await writer.commit(({ locations, segments }) => ({
          tenantId,
          indexId,
          documents: locations.map((location) => ({
            ...location,
            docId: `document ${versionId}`,
            versionId,
            metadata: '{"category":"a","year":2026}',
            chunkCount: 1,
            tokenVectors,
          })),
          documentsMax: 2 ** 40,
          usage: { tenantId, month, requests: 1, documentUpserts: 1, inputTokens: 100n },
          segments,
        }));
        if (outcome !== 'committed') throw new Error(outcome);
      }),
  };
}
