/**
 * Decides from a condition alone whether every document meets it. A deletion by such a condition is refused.
 *
 * It looks for a document that fails the condition. The values of each field form groups: the field is missing, has a value
 * that the condition names, or has another number, string, array or value. Other numbers and strings may lie anywhere between
 * the bounds of ranges, other strings also anywhere between the dates, and other arrays may have each item or not. A test that
 * must fail, or must hold, narrows the groups of its field. No document is left when a field has no group left. If one of
 * several tests must fail, each is tried (an analytic tableau; Smullyan, First-Order Logic, 1968).
 *
 * `true` is certain. `false` may be wrong where the search takes more than `stepsMax` steps, or where the condition depends on
 * which strings are dates, or names all strings that lie between two others.
 */
import { canonicalItems } from './canonical-json.ts';
import {
  comparedBy,
  comparedFlags,
  leavesOf,
  rangeFlags,
  type Condition,
  type Leaf,
  type Test,
} from './condition-tree.ts';
import { instantBounds, instantOf } from './instant.ts';
import {
  compareDecimals,
  compareTexts,
  decimalOf,
  isBound,
  isNumber,
  isString,
  textBehind,
} from './value-order.ts';

/** A step looks at one group, one place of it, one field or one choice. So many take 10 to 30 ms. */
const stepsMax = 200_000;

export function everyDocumentMeets(condition: Condition): boolean {
  if (typeof condition === 'boolean') return condition;
  return !new FailureSearch(condition).finds([{ test: condition, holds: false }], [], new Map());
}

type Range = Extract<Test, { readonly kind: 'range' }>;

interface Goal {
  readonly test: Test;
  readonly holds: boolean;
}

class FailureSearch {
  readonly #fields: ReadonlyMap<string, Field>;
  #steps = 0;

  constructor(condition: Test) {
    const leaves = Map.groupBy(leavesOf(condition), ({ field }) => field);
    this.#fields = new Map(Array.from(leaves, ([name, tests]) => [name, new Field(tests)]));
  }

  /** Whether a document may meet all goals, and one of each choice. `narrowed`: the groups of fields that goals have met. */
  finds(
    goals: readonly Goal[],
    choices: readonly (readonly Goal[])[],
    narrowed: ReadonlyMap<string, readonly Group[]>,
  ): boolean {
    this.#steps += narrowed.size + choices.length;
    const left = new Map(narrowed);
    const open = [...goals];
    const choicesLeft = [...choices];
    for (let goal = open.pop(); goal !== undefined; goal = open.pop()) {
      const { test, holds } = goal;
      if (test.kind === 'not') {
        open.push({ test: test.part, holds: !holds });
      } else if ('parts' in test) {
        const parts = test.parts.map((part) => ({ test: part, holds }));
        if ((test.kind === 'all') === holds) open.push(...parts);
        else choicesLeft.push(parts);
      } else {
        const groups = this.#narrow(left.get(test.field), test, holds);
        if (groups.length === 0) return false;
        left.set(test.field, groups);
      }
    }
    if (this.#steps > stepsMax) return true;
    const [choice, ...others] = choicesLeft.toSorted((one, other) => one.length - other.length);
    return choice === undefined || choice.some((goal) => this.finds([goal], others, left));
  }

  #narrow(groups: readonly Group[] | undefined, test: Leaf, holds: boolean): readonly Group[] {
    const field = this.#fields.get(test.field)!;
    return (groups ?? field.groups).flatMap((group) => {
      this.#steps += 1 + group.places.length + group.instants.length + group.items.size;
      return field.narrowed(group, test, holds) ?? [];
    });
  }
}

interface Group {
  readonly kind: 'missing' | 'number' | 'string' | 'array' | 'other';
  /** The only value of the group, in canonical form. */
  readonly value?: string;
  /** Its possible places between the bounds of ranges and the prefixes (`longAt`), and between the dates. */
  readonly places: readonly number[];
  readonly instants: readonly number[];
  /** Items that an array has, or has not. Any other may be in it, unless the group has one value. */
  readonly items: ReadonlyMap<string, boolean>;
}

/** The place of a number in no range, and of a string that is no date. */
const nowhere = -1;

/** The place of a string that is in no range, because it is long, and has this place among the prefixes. */
function longAt(place: number): number {
  return nowhere - 1 - place;
}

/** The place among the prefixes. */
function prefixPlace(place: number): number {
  return place < nowhere ? nowhere - 1 - place : place;
}

/** The values of one field, as the tests of it tell them apart. */
class Field {
  readonly groups: readonly Group[];
  /** The kind of values of each range, and the first and last place that lies in it. */
  readonly #reach = new Map<Range, readonly [kind: Group['kind'], first: number, last: number]>();

  constructor(tests: readonly Leaf[]) {
    const boundsOf = (compared: number): readonly string[] =>
      tests.flatMap((test) => (comparedBy(test) === compared ? givenBounds(test) : []));
    const prefixes = boundsOf(comparedFlags.prefix);
    const behind = prefixes.flatMap((prefix) => {
      const end = textBehind(textOf(prefix));
      return end === undefined ? [] : [JSON.stringify(end)];
    });
    const bounds = [...boundsOf(comparedFlags.values), ...prefixes, ...behind];
    const numbers = new Order(bounds.filter(isNumber).map(decimalOf), compareDecimals);
    const strings = new Order(bounds.filter(isString).map(textOf), compareTexts, isNextText);
    const dates = new Order(boundsOf(comparedFlags.dates).map(dateOf), compareInstants, isNextInstant);
    const orders = {
      number: (bound: string) => numbers.placeOf(decimalOf(bound)),
      string: (bound: string) => strings.placeOf(textOf(bound)),
      date: (bound: string) => dates.placeOf(dateOf(bound)),
    };
    for (const test of tests) {
      const [bound] = givenBounds(test);
      if (test.kind !== 'range' || bound === undefined) continue;
      if (comparedBy(test) === comparedFlags.prefix) {
        const end = textBehind(textOf(bound));
        const last = end === undefined ? Infinity : strings.placeOf(end) - 1;
        this.#reach.set(test, ['string', orders.string(bound), last]);
        continue;
      }
      const kind = isNumber(bound) ? 'number' : 'string';
      const placeOf = orders[comparedBy(test) === comparedFlags.dates ? 'date' : kind];
      const first =
        test.low === '' ? 0 : placeOf(test.low) + Number((test.flags & rangeFlags.aboveLow) !== 0);
      const last =
        test.high === '' ? Infinity : placeOf(test.high) - Number((test.flags & rangeFlags.belowHigh) !== 0);
      this.#reach.set(test, [kind, first, last]);
    }
    const none = { places: [], instants: [], items: new Map<string, boolean>() };
    const groupOf = (value: string): Group => {
      // The search does not know whether a value that could be no bound lies in ranges.
      if (isNumber(value)) {
        const place = numbers.placeOf(decimalOf(value));
        return { ...none, kind: 'number', value, places: isBound(value) ? [place] : [nowhere, place] };
      }
      if (isString(value)) {
        const instant = instantOf(textOf(value));
        const instants = [instant === undefined ? nowhere : dates.placeOf(instant)];
        const place = strings.placeOf(textOf(value));
        const places = isBound(value) ? [place] : [longAt(place), place];
        return { ...none, kind: 'string', value, places, instants };
      }
      if (!value.startsWith('[')) return { ...none, kind: 'other', value };
      return {
        ...none,
        kind: 'array',
        value,
        items: new Map(canonicalItems(value).map((item) => [item, true])),
      };
    };
    const named = tests.flatMap((test) => (test.kind === 'terms' ? [...test.values] : []));
    this.groups = [
      { ...none, kind: 'missing' },
      ...Array.from(new Set([...named, ...bounds, 'true', 'false', 'null']), groupOf),
      { ...none, kind: 'number', places: [nowhere, ...numbers.gaps] },
      {
        ...none,
        kind: 'string',
        places: [...strings.gaps.map(longAt), ...strings.gaps],
        instants: [nowhere, ...dates.places],
      },
      { ...none, kind: 'array' },
      { ...none, kind: 'other' },
    ];
  }

  /** The part of a group that meets a test, or fails it; `undefined` if there is none. */
  narrowed(group: Group, test: Leaf, holds: boolean): Group | undefined {
    const whole = (meets: boolean): Group | undefined => (meets === holds ? group : undefined);
    if (test.kind === 'terms') return whole(group.value !== undefined && test.values.has(group.value));
    const compared = comparedBy(test);
    if (compared === comparedFlags.presence) return whole(group.kind !== 'missing');
    if (compared === comparedFlags.items) {
      if (group.kind !== 'array') return whole(false);
      const has = group.items.get(test.low) ?? (group.value === undefined ? undefined : false);
      if (has !== undefined) return whole(has);
      return { ...group, items: new Map([...group.items, [test.low, holds]]) };
    }
    const [kind, first, last] = this.#reach.get(test)!;
    if (group.kind !== kind) return whole(false);
    const list = compared === comparedFlags.dates ? 'instants' : 'places';
    const at = compared === comparedFlags.prefix ? prefixPlace : (place: number) => place;
    const places = group[list].filter((place) => (first <= at(place) && at(place) <= last) === holds);
    return places.length === 0 ? undefined : { ...group, [list]: places };
  }
}

/** Points in order. The n-th has the place 2n + 1, and the gap before it has 2n. */
class Order<T> {
  readonly #points: readonly T[];
  readonly #compare: (one: T, other: T) => number;
  /** The places of gaps that may hold a value. */
  readonly gaps: readonly number[];
  readonly places: readonly number[];

  constructor(
    points: readonly T[],
    compare: (one: T, other: T) => number,
    /** Whether nothing lies between two points. `undefined` stands for the ends of the order. */
    areNext: (before: T | undefined, after: T | undefined) => boolean = () => false,
  ) {
    const sorted = points
      .toSorted(compare)
      .filter((point, at, all) => at === 0 || compare(all[at - 1]!, point) !== 0);
    this.#points = sorted;
    this.#compare = compare;
    this.gaps = [...sorted, undefined].flatMap((point, at) =>
      areNext(sorted[at - 1], point) ? [] : [2 * at],
    );
    this.places = [...this.gaps, ...sorted.map((_, at) => 2 * at + 1)];
  }

  placeOf(value: T): number {
    let [at, end] = [0, this.#points.length];
    while (at < end) {
      const middle = (at + end) >> 1;
      if (this.#compare(this.#points[middle]!, value) < 0) at = middle + 1;
      else end = middle;
    }
    if (at === this.#points.length) return 2 * at;
    return 2 * at + Number(this.#compare(this.#points[at]!, value) === 0);
  }
}

function givenBounds(test: Leaf): readonly string[] {
  const compared = comparedBy(test);
  if (test.kind !== 'range' || compared === comparedFlags.items) return [];
  return [test.low, test.high].filter((bound) => bound !== '');
}

function textOf(token: string): string {
  return JSON.parse(token) as string;
}

function dateOf(token: string): bigint {
  return instantOf(textOf(token))!;
}

/** No text is before the empty one, and none between a text and the same with U+0000 at its end. */
function isNextText(before: string | undefined, after: string | undefined): boolean {
  return after === (before === undefined ? '' : `${before}\0`);
}

function compareInstants(one: bigint, other: bigint): number {
  return Number(one > other) - Number(one < other);
}

function isNextInstant(before = instantBounds[0] - 1n, after = instantBounds[1] + 1n): boolean {
  return after - before < 2n;
}
