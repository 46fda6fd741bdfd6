/** Lists and counts from the catalog, as it is at the moment of the request. No index is opened. */
import type {
  DocumentCount,
  DocumentPage,
  IndexPlace,
  Page,
  StoredDocument,
} from '../../catalog/contract.ts';
import { ServiceError } from '../../errors.ts';
import type { IndexPage, RequestContext } from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import { readingWork } from '../limits/work.ts';
import { pieceOf, type OperationDeps } from '../operation-deps.ts';

/** Bytes of metadata in a page. One document may exceed it. */
const pageBytesMax = 4 * 1024 * 1024;

export async function listIndexPage(
  { catalog }: OperationDeps,
  { tenant }: RequestContext,
  { after, limit }: Page<IndexPlace>,
): Promise<IndexPage> {
  const found = await catalog.listIndexes(tenant.id, { after, limit: limit + 1 });
  return { indexes: found.slice(0, limit), hasMore: found.length > limit };
}

export async function listDocuments(
  { catalog, indexes, scanQueue, nowMs }: OperationDeps,
  context: RequestContext,
  indexId: string,
  page: Page<string>,
): Promise<DocumentPage> {
  const { tenant } = context;
  const { id } = await indexes.recentRow(tenant.id, indexId);
  const work = readingWork({ rows: page.limit, bytes: pageBytesMax });
  const listed = await scanQueue.run(tenant.id, pieceOf(context, work), () =>
    catalog.listDocuments(id, { ...page, nowMs: nowMs(), bytesMax: pageBytesMax }),
  );
  if (listed === undefined) throw missingIndex();
  return listed;
}

export async function getDocument(
  { catalog, expiry, indexes }: OperationDeps,
  { tenant }: RequestContext,
  indexId: string,
  docId: string,
): Promise<StoredDocument> {
  const { id } = await indexes.recentRow(tenant.id, indexId);
  const found = await catalog.findDocument(id, docId);
  if (found !== undefined && !expiry.hasExpired(found)) return found;
  await indexes.assertExists(tenant.id, id);
  throw missingDocument();
}

export async function countDocuments(
  { catalog, indexes, scanQueue, nowMs }: OperationDeps,
  context: RequestContext,
  indexId: string,
): Promise<DocumentCount> {
  const { tenant } = context;
  const { id } = await indexes.recentRow(tenant.id, indexId);
  const work = readingWork({ rows: 1, bytes: 0 });
  const count = await scanQueue.run(tenant.id, pieceOf(context, work), () =>
    catalog.countDocuments(id, nowMs()),
  );
  if (count === undefined) throw missingIndex();
  return count;
}

export function missingDocument(): ServiceError {
  return new ServiceError('not_found', 'no such document');
}
