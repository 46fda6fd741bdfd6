/**
 * Every operation on an index, and the deletion of that index at every moment of the operation: before each call of the
 * catalog. The operation answers as if it came before the deletion, or 404.
 */
import { randomUUID } from 'node:crypto';
import type { Catalog } from '../../../src/catalog/contract.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { RequestContext } from '../../../src/service/contract.ts';
import type { RunningService } from '../../../src/service/create-service.ts';
import { documentsOf } from '../../support/stages/service-stage.ts';

const hookedNames = [
  'allocateIds',
  'changesSince',
  'commitDelete',
  'commitDeleteVersions',
  'commitUpsert',
  'commitUpserts',
  'countDocuments',
  'countStored',
  'createSegment',
  'expiredDocuments',
  'findDocument',
  'firstVersions',
  'getIndex',
  'listDocuments',
  'loadIndexState',
  'readHead',
  'readMetadata',
  'resolveVersions',
];

type Call = (...args: readonly unknown[]) => Promise<unknown>;
type Hook = (call: string) => Promise<void>;

/** Replaces functions of this catalog: each awaits the hook before its work. */
export function hookCatalog(catalog: Catalog): { hook: Hook | undefined } {
  const hooked: { hook: Hook | undefined } = { hook: undefined };
  const calls = catalog as unknown as Record<string, Call>;
  for (const name of hookedNames) {
    const work = calls[name]?.bind(catalog);
    if (work === undefined) continue;
    calls[name] = async (...args) => {
      await hooked.hook?.(name);
      return await work(...args);
    };
  }
  return hooked;
}

const range = '{"n":{"gte":1}}';
type Operation = (service: RunningService, context: RequestContext, id: string) => Promise<unknown>;
export const operations: Readonly<Record<string, Operation>> = {
  search: (service, context, id) => service.search(context, id, { query: 'word', returnComponents: false }),
  'range search': (service, context, id) =>
    service.search(context, id, { query: 'word', where: range, returnComponents: false }),
  'exact search': (service, context, id) =>
    service.search(context, id, { query: 'word', where: range, exact: true, returnComponents: false }),
  query: (service, context, id) =>
    service.query(context, id, [{ query: 'word', where: range, returnComponents: false }]),
  list: (service, context, id) => service.listDocuments(context, id, { limit: 10 }),
  'list by range': (service, context, id) => service.listDocuments(context, id, { limit: 10, where: range }),
  facets: (service, context, id) => service.countValues(context, id, { fields: ['n'], limit: 5 }),
  'facets of a range': (service, context, id) =>
    service.countValues(context, id, { fields: ['n'], limit: 5, where: range }),
  'delete by range': (service, context, id) =>
    service.deleteMatching(context, id, { limit: 10, dryRun: false, where: range }),
  'delete a document': (service, context, id) => service.deleteDocument(context, id, 'a'),
  'get a document': (service, context, id) => service.getDocument(context, id, 'a'),
  'count documents': (service, context, id) => service.countDocuments(context, id),
  'describe the index': (service, context, id) => service.describeIndex(context, id),
  'update a document': (service, context, id) =>
    service.updateDocument(context, id, 'a', { metadata: '{"n":9}' }),
  upsert: (service, context, id) =>
    service.upsertDocuments(context, id, documentsOf({ c: 'word c' }, '{"n":3}')),
};

export interface Raced {
  readonly service: RunningService;
  readonly hooked: { hook: Hook | undefined };
  readonly context: () => RequestContext;
  /** Deletes the index. */
  readonly erase: (id: string) => Promise<unknown>;
}

/** Returns what was answered otherwise than it would have been before, and not with 404. */
export async function wrongAnswers({ service, hooked, context, erase }: Raced): Promise<readonly string[]> {
  const wrong: string[] = [];
  const newIndex = async (): Promise<string> => {
    const { id } = await service.createIndex(context(), { name: randomUUID(), metadataSchema: '{}' });
    await service.upsertDocuments(context(), id, documentsOf({ a: 'word a', b: 'word b' }, '{"n":2}'));
    return id;
  };
  for (const [name, operation] of Object.entries(operations)) {
    const calls = new Set<string>();
    const id = await newIndex();
    hooked.hook = async (call) => void calls.add(call);
    const answer = withoutIds(await operation(service, context(), id));
    hooked.hook = undefined;
    await erase(id);
    for (const call of calls) {
      const raced = await newIndex();
      let deletion: Promise<unknown> | undefined;
      hooked.hook = async (reached) => {
        if (reached !== call || deletion !== undefined) return;
        deletion = erase(raced);
        await deletion;
      };
      const found = await operation(service, context(), raced).then(withoutIds, (error: unknown) => error);
      hooked.hook = undefined;
      if (found instanceof ServiceError && found.httpStatus === 404) continue;
      if (found instanceof Error) wrong.push(`${name}, deleted before ${call}: ${String(found)}`);
      else if (found !== answer)
        wrong.push(`${name}, deleted before ${call}: ${String(found)}, not ${answer}`);
    }
  }
  return wrong;
}

/** An answer without what differs from one index to the other. */
function withoutIds(answer: unknown): string {
  const own = new Set(['chunkId', 'indexId', 'record', 'segmentId', 'usage', 'versionId']);
  return JSON.stringify(answer, (key, value: unknown) => (own.has(key) ? undefined : value)) ?? '';
}
