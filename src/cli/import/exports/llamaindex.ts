/** LlamaIndex: `docstore.json` of a storage context, and `to_json` of nodes and documents. */
import type { Block } from '../../blocks.ts';
import { isObject } from '../../json.ts';
import { readMembers } from '../../json-members.ts';
import { DocIdSet } from '../doc-id-set.ts';
import type { FileRow } from '../sources/row-file.ts';
import { firstOf, objectIn, vectorsIn, type Export, type JsonObject } from './export.ts';
import { parseMember } from './member.ts';

export const llamaindex: Export = {
  title: 'LlamaIndex',
  wholes: [
    {
      words: 'docstore.json',
      fits: (store) => Object.keys(store).some((name) => name.startsWith('docstore/')),
      read: readDocstore,
    },
  ],
  rows: [
    {
      words: 'lines of to_json',
      fits: (row) => Object.hasOwn(row, 'id_'),
      take: (row) => ({
        id: firstOf(row, ['id_']),
        text: firstOf(row, ['text']) ?? firstOf(objectIn(row, 'text_resource'), ['text'], 'text_resource.'),
        fields: objectIn(row, 'metadata'),
        vectors: vectorsIn(row, ['embedding']),
      }),
    },
  ],
  prefixes: ['metadata'],
};

/**
 * The nodes, and those documents that no node came from. The store has the text of the others twice: whole, and cut into
 * nodes. A node names its document, and may stand before it, so the file is read twice.
 */
async function* readDocstore(open: () => AsyncGenerator<Block>, name: string): AsyncGenerator<FileRow> {
  const cut = new DocIdSet();
  for await (const { row } of entriesOf(open(), name)) {
    const source = objectIn(objectIn(row, 'relationships'), '1')['node_id'];
    if (typeof source === 'string') cut.add(source);
  }
  for await (const { row, read } of entriesOf(open(), name)) {
    const { id_: id, class_name: kind } = row;
    if (kind !== 'Document' || typeof id !== 'string' || !cut.has(id)) yield read;
  }
}

async function* entriesOf(
  blocks: AsyncGenerator<Block>,
  name: string,
): AsyncGenerator<{ readonly row: JsonObject; readonly read: FileRow }> {
  for await (const member of readMembers(blocks, { name, path: ['docstore/data'] })) {
    const parsed = parseMember(member);
    const entry = 'object' in parsed ? parsed.object['__data__'] : undefined;
    const row = isObject(entry) ? entry : {};
    const read = { line: member.number, bytesRead: member.fileBytesRead };
    yield { row, read: { ...read, parsed: 'problem' in parsed ? parsed : { object: row } } };
  }
}
