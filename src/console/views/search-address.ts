/** A search in the address of the page, so that people can reload it, go back to it and share it. It holds no key. */
import { conditionsIn, noConditions, whereOf, type Conditions } from '../parts/conditions.tsx';

/** A search as the form has it. */
export interface Wanted {
  readonly query: string;
  /** Empty = the default of the service. */
  readonly topK: string;
  readonly candidateK: string;
  /** Results before those of the page. */
  readonly offset: number;
  readonly conditions: Conditions;
  readonly grouped: boolean;
  readonly exact: boolean;
  /** Whether words of the query match the match fields of the index. */
  readonly matches: boolean;
}

/** Parameters have the names of the fields of a search. Those that are absent have their defaults. */
export function wantedIn(search: string): Wanted {
  const parameters = new URLSearchParams(search);
  const where = parameters.get('where');
  return {
    query: parameters.get('query') ?? '',
    topK: parameters.get('top_k') ?? '10',
    candidateK: parameters.get('candidate_k') ?? '',
    offset: Number(parameters.get('offset') ?? 0),
    conditions: where === null ? noConditions : conditionsIn(where),
    grouped: parameters.get('group_by_document') === 'true',
    exact: parameters.get('exact') === 'true',
    matches: parameters.get('match') !== 'false',
  };
}

/** The request of a search. Throws an error that says which condition is wrong. */
export function bodyOf({ query, topK, candidateK, offset, conditions, grouped, exact, matches }: Wanted) {
  const where = whereOf(conditions);
  return {
    query,
    ...(topK === '' ? {} : { top_k: Number(topK) }),
    ...(candidateK === '' ? {} : { candidate_k: Number(candidateK) }),
    ...(offset === 0 ? {} : { offset }),
    ...(where === undefined ? {} : { where }),
    ...(grouped ? { group_by_document: true } : {}),
    ...(exact ? { exact: true } : {}),
    ...(matches ? {} : { match: false }),
  };
}

/** The search in the address. Throws as `bodyOf` does. */
export function searchOf(wanted: Wanted): string {
  const fields = Object.entries(bodyOf(wanted)).map(([name, value]): [string, string] => [
    name,
    typeof value === 'object' ? JSON.stringify(value) : String(value),
  ]);
  return new URLSearchParams(fields).toString();
}
