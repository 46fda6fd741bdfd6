/**
 * Chroma: `get` of a collection as JSON, one object or one a line. It is an object of columns. Each is read by itself, side by
 * side with the others, so none is held.
 */
import type { Block } from '../../blocks.ts';
import { inputError } from '../../failure.ts';
import { readMembers, type Member } from '../../json-members.ts';
import { parseValue, type ParsedLine } from '../../jsonl.ts';
import type { FileRow } from '../sources/row-file.ts';
import { firstOf, objectIn, vectorsIn, type Export, type JsonObject } from './export.ts';

export const chroma: Export = {
  title: 'Chroma',
  wholes: [
    {
      words: 'get() of a collection',
      fits: isGet,
      read: readColumns,
    },
  ],
  rows: [
    {
      words: 'get() of a collection',
      fits: (row) => Object.hasOwn(row, 'ids'),
      take: (row) => ({
        id: firstOf(row, ['ids']),
        text: firstOf(row, ['documents']),
        fields: objectIn(row, 'metadatas'),
        vectors: vectorsIn(row, ['embeddings']),
      }),
    },
  ],
  prefixes: ['metadatas'],
};

/** Columns beside the identifiers. */
const columns = ['documents', 'metadatas', 'embeddings'];
const names = new Set([...columns, 'uris', 'data', 'included', 'include']);

/** `query` has a list of identifiers for each query. Where these stand behind the beginning, all names are those of `get`. */
function isGet({ ids, ...others }: JsonObject): boolean {
  if (Array.isArray(ids)) return !ids.some((id) => Array.isArray(id));
  const areNames = Object.keys(others).every((name) => names.has(name));
  return areNames && columns.some((column) => Array.isArray(others[column]));
}

/** Rows have one member of each column, under its name. */
async function* readColumns(open: () => AsyncGenerator<Block>, name: string): AsyncGenerator<FileRow> {
  const others = columns.map(
    (column) => new Column(column, readMembers(open(), { name, path: [column], isOptional: true })),
  );
  const unequal = (column: string): never => {
    throw inputError(`${name}: ${column} has more or fewer members than ids`);
  };
  try {
    for await (const id of readMembers(open(), { name, path: ['ids'] })) {
      const members = [{ column: 'ids', member: id }];
      for (const other of others) {
        const member = (await other.memberIn(id.value)) ?? unequal(other.name);
        if (member !== 'none') members.push({ column: other.name, member });
      }
      const bytesRead = Math.max(...members.map(({ member }) => member.fileBytesRead));
      yield { line: id.number, parsed: rowOf(members), bytesRead };
    }
    for (const other of others) if (!(await other.isAtEnd())) unequal(other.name);
  } finally {
    await Promise.all(others.map((other) => other.close()));
  }
}

type ColumnMember = { readonly column: string; readonly member: Member };

function rowOf(members: readonly ColumnMember[]): ParsedLine {
  const row: Record<string, unknown> = {};
  for (const { column, member } of members) {
    const { bytes, problem } = member;
    const parsed = problem === undefined ? parseValue(bytes) : { problem };
    if ('problem' in parsed) return parsed;
    row[column] = parsed.value;
  }
  return { object: row };
}

/** A column that is read along with the identifiers. */
class Column {
  readonly name: string;
  readonly #members: AsyncGenerator<Member>;
  #next: Promise<IteratorResult<Member>> | undefined;
  /** The last value in which it had a member. */
  #last = 0;

  constructor(name: string, members: AsyncGenerator<Member>) {
    this.name = name;
    this.#members = members;
  }

  /**
   * The member beside the next identifier of a value of the file. 'none' = the value has no such column. `undefined` = some
   * members or identifiers stand alone.
   */
  async memberIn(value: number): Promise<Member | 'none' | undefined> {
    const next = await this.#peek();
    if (next.done === true || next.value.value > value) return this.#last === value ? undefined : 'none';
    if (next.value.value < value) return undefined;
    this.#next = undefined;
    this.#last = value;
    return next.value;
  }

  async isAtEnd(): Promise<boolean> {
    return (await this.#peek()).done === true;
  }

  async close(): Promise<void> {
    await this.#members.return(undefined);
  }

  #peek(): Promise<IteratorResult<Member>> {
    return (this.#next ??= this.#members.next());
  }
}
