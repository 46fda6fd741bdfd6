/**
 * Lists and counts from the catalog, as it is at the moment of the request. An index is opened only to find the documents that
 * a condition matches. Of these the catalog chooses the page, from parts of the matches, in turn with the lists and counts of
 * all tenants. So the time grows with the number of matches, and a page is as stable under writes as one without a condition.
 */
import type {
  DocumentCount,
  DocumentPage,
  IndexPlace,
  Page,
  StoredDocument,
} from '../../catalog/contract.ts';
import { ServiceError } from '../../errors.ts';
import { metadataInParts } from '../../index/segments/metadata-parts.ts';
import type { DocumentListRequest, IndexPage, ListedDocuments, RequestContext } from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import { readingWork } from '../limits/work.ts';
import { assertWanted, pieceOf, type OperationDeps } from '../operation-deps.ts';
import { withFieldsAlone } from '../passages/metadata-text.ts';
import { takingTurns } from '../limits/turns.ts';
import { hintFor } from '../hints/hints.ts';
import { withMatching } from './read-index.ts';
import { filtersFor } from './search.ts';

/** Bytes of metadata in a page. One document may exceed it. */
const pageBytesMax = 4 * 1024 * 1024;
/** Matches that the catalog reads at a time: some milliseconds. */
const partVersions = 4096;

export async function listIndexPage(
  { catalog }: OperationDeps,
  { tenant }: RequestContext,
  { after, limit }: Page<IndexPlace>,
): Promise<IndexPage> {
  const found = await catalog.listIndexes(tenant.id, { after, limit: limit + 1 });
  return { indexes: found.slice(0, limit), hasMore: found.length > limit };
}

export async function listDocuments(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  { where, fields, ...page }: DocumentListRequest,
): Promise<ListedDocuments> {
  const filters = filtersFor({ where }, '');
  const listed =
    filters.where === undefined
      ? await listAll(deps, context, indexId, page)
      : await withMatching(deps, context, indexId, filters, async (versionIds, reader) => ({
          ...(await listVersions(deps, context, indexId, { ...page, versionIds })),
          ...(await hintFor(deps, context, reader, { indexId, where, found: versionIds.length })),
        }));
  return fields === undefined ? listed : withFields(listed, fields);
}

interface MatchingPage extends Page<string> {
  readonly versionIds: Float64Array;
}

async function listVersions(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  { versionIds, after, limit }: MatchingPage,
): Promise<DocumentPage> {
  const { catalog, indexes, scanQueue, nowMs } = deps;
  const { tenant } = context;
  const inTurn = <T>(rows: number, bytes: number, read: () => Promise<T>): Promise<T> => {
    assertWanted(context, nowMs());
    return scanQueue.run(tenant.id, pieceOf(context, readingWork({ rows, bytes })), read);
  };
  const order = { after, limit: limit + 1, nowMs: nowMs() };
  let first: readonly number[] = [];
  for (let at = 0; at < versionIds.length; at += partVersions) {
    const wanted = [...first, ...versionIds.subarray(at, at + partVersions)];
    first = await inTurn(wanted.length, 0, () => catalog.firstVersions(indexId, wanted, order));
  }
  const listed = await pageOf(first, limit, (wanted) =>
    inTurn(wanted.length, pageBytesMax, () => catalog.readMetadata(indexId, wanted)),
  );
  // The versions of an index that is deleted meanwhile are not among the first.
  await indexes.assertExists(tenant.id, indexId);
  return listed;
}

async function pageOf(
  first: readonly number[],
  limit: number,
  read: Parameters<typeof metadataInParts<StoredDocument>>[1],
): Promise<DocumentPage> {
  const documents: StoredDocument[] = [];
  let bytes = 0;
  for await (const { versions } of metadataInParts(Float64Array.from(first), read)) {
    for (const document of versions) {
      if (documents.length === limit || bytes >= pageBytesMax) return { documents, hasMore: true };
      documents.push(document);
      bytes += Buffer.byteLength(document.metadata);
    }
  }
  return { documents, hasMore: false };
}

/** The fields are in the order of the request, each as it was sent. */
async function withFields(page: ListedDocuments, fields: readonly string[]): Promise<ListedDocuments> {
  const names = fields.map((field) => JSON.stringify(field));
  const documents: StoredDocument[] = [];
  const giveWay = takingTurns();
  for (const document of page.documents) {
    await giveWay();
    documents.push({ ...document, metadata: withFieldsAlone(document.metadata, names) });
  }
  return { ...page, documents };
}

async function listAll(
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
