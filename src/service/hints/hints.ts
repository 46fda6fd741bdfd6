/** Words to a caller whose request may ask for something else than it seems. They are for people, and an answer is right without them. */
import type { IndexReader } from '../../index/contract.ts';
import { conditionTree } from '../../index/terms/condition.ts';
import { anyDate, anyValueOf, dateFieldsOf, stepsOf } from '../../index/terms/condition-tree.ts';
import { fieldWithOperators, joiningWordIn } from '../../index/terms/operators.ts';
import type { RequestContext, SearchRequest } from '../contract.ts';
import { readingWork } from '../limits/work.ts';
import { askerOf, pieceOf, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { fieldHint, shownName } from './field-hints.ts';

/** Documents that are looked at, and bytes of their metadata. */
const sampledDocuments = 100;
const sampledBytes = 256 * 1024;
/** An answer waits at most so long for its turn to look at them. */
const sampleMsMax = 250;
/** An answer waits at most so long for a hint that looks into the index. */
const hintMsMax = 1_000;

type Hinted = { readonly hint?: string };
type HintDeps = Pick<OperationDeps, 'nowMs' | 'engineQueue' | 'scanQueue' | 'catalog'>;
type Conditions = Pick<SearchRequest, 'filter' | 'where'>;

/**
 * `found`: how many the request has found, and left out before. `maySeek`: whether the index may be asked why nothing was found;
 * by default it may.
 */
export async function hintFor(
  deps: HintDeps,
  context: RequestContext,
  reader: IndexReader,
  {
    indexId,
    filter,
    where,
    found,
    maySeek = true,
  }: Conditions & { readonly indexId: string; readonly found: number; readonly maySeek?: boolean },
): Promise<Hinted> {
  const hint = foreignWords({ filter, where });
  if (hint !== undefined) return { hint };
  if (!maySeek || found > 0 || (filter === undefined && where === undefined)) return {};
  const within = (ms: number) => ({
    ...context,
    deadlineMs: Math.min(context.deadlineMs, deps.nowMs() + ms),
  });
  try {
    const dates = where === undefined ? undefined : await dateHint(deps, within(hintMsMax), reader, where);
    const empty = dates ?? (await hintFromDocuments(deps, within(sampleMsMax), indexId, { filter, where }));
    return empty === undefined ? {} : { hint: empty };
  } catch {
    // The values of the field are still being read, or the time is over. The next request may have the hint.
    return {};
  }
}

/** The filter or the condition is written as for another product. It finds nothing unless a document has that very value. */
function foreignWords({ filter, where }: Conditions): string | undefined {
  const word = joiningWordIn(filter) ?? joiningWordIn(where);
  if (word !== undefined) {
    return `"${word}" is the name of a field here; conditions beside each other in where must all hold, and any_of lists alternatives`;
  }
  const field = filter === undefined ? undefined : fieldWithOperators(filter);
  if (field === undefined) return undefined;
  return `filter compares the field ${shownName(field)} with an object of operators as a value; to use operators, send where`;
}

/** A field is compared as a date, and has other values alone. */
async function dateHint(
  deps: HintDeps,
  context: RequestContext,
  reader: IndexReader,
  where: string,
): Promise<string | undefined> {
  for (const field of dateFieldsOf(conditionTree(where, 'where'))) {
    const ask = (condition: Parameters<typeof stepsOf>[0]) => ({
      where: stepsOf(condition),
      timeoutMs: timeLeftMs(context, deps.nowMs()),
    });
    const asker = askerOf(deps, context);
    if ((await reader.tokenVectors(ask(anyDate(field)), asker)) > 0) continue;
    const documents = (await reader.matching(ask(anyValueOf(field)), asker)).length;
    if (documents === 0) continue;
    const name = shownName(JSON.parse(field) as string);
    return `${name} is a date in no document, and has another value in ${documents}; a date is written as "2026-11-27" or "2026-11-27T09:30:00Z"`;
  }
  return undefined;
}

async function hintFromDocuments(
  { catalog, scanQueue, nowMs }: HintDeps,
  context: RequestContext,
  indexId: string,
  conditions: Conditions,
): Promise<string | undefined> {
  const work = readingWork({ rows: sampledDocuments, bytes: sampledBytes });
  const order = { limit: sampledDocuments, bytesMax: sampledBytes, nowMs: nowMs() };
  const page = await scanQueue.run(context.tenant.id, pieceOf(context, work), () =>
    catalog.listDocuments(indexId, order),
  );
  if (page === undefined || page.documents.length === 0) return undefined;
  const objects = page.documents.map(({ metadata }) => metadata);
  return fieldHint(conditions, { objects, isWhole: !page.hasMore });
}
