/** Looks at the first rows before an import, and refuses an input that was most likely misjudged. */
import { alternatives } from '../../input/issue-words.ts';
import { inputError } from '../failure.ts';
import { isProblem, type ImportItem, type InputDocument } from './document.ts';
import type { FieldChoice } from './fields.ts';
import { isText, stringsIn } from './texts-in.ts';

const rowsLookedAtMax = 100;
const namesMax = 5;

export interface LookedAhead {
  /** The first items, and all items. */
  readonly head: readonly ImportItem[];
  readonly items: AsyncGenerator<ImportItem>;
  /** There are no others than the first. */
  readonly isWhole: boolean;
}

export interface LookedAt {
  /** Name in messages. */
  readonly name: string;
  readonly choice: FieldChoice;
  /** The end of messages: what else could be read. */
  readonly advice?: string;
}

/** A `CommandFailure` says if none of the first items is a document, or if their titles are taken for their texts. */
export async function lookAhead(
  items: AsyncGenerator<ImportItem>,
  { name, choice, advice = '' }: LookedAt,
): Promise<LookedAhead> {
  const head: ImportItem[] = [];
  let isWhole = false;
  while (!isWhole && head.length < rowsLookedAtMax) {
    const next = await items.next();
    if (next.done === true) isWhole = true;
    else head.push(next.value);
  }
  const problem = problemOf(head, name) ?? problemOfTitles(head, choice);
  if (problem !== undefined) {
    await items.return(undefined);
    const hint = head.find((item) => item.hint !== undefined)?.hint;
    throw inputError(`${name} ${problem}${hint === undefined ? '' : `; ${hint}`}${advice}`);
  }
  const all = async function* (): AsyncGenerator<ImportItem> {
    yield* head;
    yield* items;
  };
  return { head, items: all(), isWhole };
}

function problemOf(head: readonly ImportItem[], name: string): string | undefined {
  if (!head.every(({ item }) => isProblem(item))) return undefined;
  const [first] = head;
  if (first === undefined || !isProblem(first.item)) return 'holds no document';
  const { file, line, error } = first.item;
  const place = file === name ? `line ${line}` : `${file}:${line}`;
  return `holds no document in its first ${head.length} lines; ${place}: ${error} (--format, --id-field, --auto-id and --text-field say what to expect)`;
}

/** Rows that have a title and no text, while a field with another name holds more text than the titles. */
function problemOfTitles(head: readonly ImportItem[], { text }: FieldChoice): string | undefined {
  const documents = head.map(({ item }) => item).filter((item): item is InputDocument => !isProblem(item));
  if (text !== undefined || documents.some(({ besideTitle }) => besideTitle === undefined)) return undefined;
  const lengths = new Map<string, number>();
  for (const { besideTitle = {} } of documents) {
    for (const [name, value] of stringsIn(besideTitle))
      if (name !== 'title' && isText(value)) lengths.set(name, (lengths.get(name) ?? 0) + value.length);
  }
  const titles = documents.reduce((sum, { document }) => sum + document.text.length, 0);
  const longer = [...lengths]
    .filter(([, length]) => length > titles)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, namesMax);
  if (longer.length === 0) return undefined;
  const names = alternatives(longer.map(([name]) => JSON.stringify(name)));
  return `has no text beside the title, so the title would be the whole text, while ${names} holds more: choose with --text-field NAME, also for the title`;
}
