/** Words to a caller whose request may ask for something else than it seems. They are for people, and an answer is right without them. */
import type { IndexReader } from '../../index/contract.ts';
import { conditionTree } from '../../index/terms/condition.ts';
import { anyDate, anyValueOf, dateFieldsOf, stepsOf } from '../../index/terms/condition-tree.ts';
import { fieldWithOperators, joiningWordIn } from '../../index/terms/operators.ts';
import type { RequestContext, SearchRequest } from '../contract.ts';
import { askerOf, timeLeftMs, type OperationDeps } from '../operation-deps.ts';

/** A hint shows at most this many characters of a field's name. */
const hintNameLengthMax = 64;
/** An answer waits at most so long for a hint that looks into the index. */
const hintMsMax = 1_000;

type Hinted = { readonly hint?: string };
type Conditions = Pick<SearchRequest, 'filter' | 'where'>;

/** `found`: how many the request has found. */
export async function hintFor(
  deps: Pick<OperationDeps, 'nowMs' | 'engineQueue'>,
  context: RequestContext,
  reader: IndexReader,
  { filter, where, found }: Conditions & { readonly found: number },
): Promise<Hinted> {
  const hint = foreignWords({ filter, where });
  if (hint !== undefined) return { hint };
  if (where === undefined || found > 0) return {};
  return await dateHint(deps, context, reader, where);
}

/** The filter or the condition is written as for another product. It finds nothing unless a document has that very value. */
function foreignWords({ filter, where }: Conditions): string | undefined {
  const word = joiningWordIn(filter) ?? joiningWordIn(where);
  if (word !== undefined) {
    return `"${word}" is the name of a field here; conditions beside each other in where must all hold, and any_of lists alternatives`;
  }
  const field = filter === undefined ? undefined : fieldWithOperators(filter);
  if (field === undefined) return undefined;
  return `filter compares the field ${shown(field)} with an object of operators as a value; to use operators, send where`;
}

/** A field is compared as a date, and has other values alone. */
async function dateHint(
  deps: Pick<OperationDeps, 'nowMs' | 'engineQueue'>,
  context: RequestContext,
  reader: IndexReader,
  where: string,
): Promise<Hinted> {
  try {
    for (const field of dateFieldsOf(conditionTree(where, 'where'))) {
      const ask = (condition: Parameters<typeof stepsOf>[0]) => ({
        where: stepsOf(condition),
        timeoutMs: Math.min(hintMsMax, timeLeftMs(context, deps.nowMs())),
      });
      const asker = askerOf(deps, context);
      if ((await reader.tokenVectors(ask(anyDate(field)), asker)) > 0) continue;
      const documents = (await reader.matching(ask(anyValueOf(field)), asker)).length;
      if (documents === 0) continue;
      const name = shown(JSON.parse(field) as string);
      return {
        hint: `${name} is a date in no document, and has another value in ${documents}; a date is written as "2026-11-27" or "2026-11-27T09:30:00Z"`,
      };
    }
  } catch {
    // The values of the field are still being read, or the time is over. The next request may have the hint.
  }
  return {};
}

function shown(field: string): string {
  return JSON.stringify(field.slice(0, hintNameLengthMax).toWellFormed());
}
