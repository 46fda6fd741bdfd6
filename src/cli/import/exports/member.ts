/** Rows that are members of an array or an object in a JSON file. */
import { isObject } from '../../json.ts';
import { readMembers, type Member } from '../../json-members.ts';
import { parseLine, parseValue, type ParsedLine } from '../../jsonl.ts';
import type { WholeForm } from './export.ts';

/** Reads the rows that are the members at a path. */
export function inside(...path: readonly string[]): WholeForm['read'] {
  return async function* (open, name) {
    for await (const member of readMembers(open(), { name, path }))
      yield { line: member.number, parsed: parseMember(member), bytesRead: member.fileBytesRead };
  };
}

/** The object that the member is, with or without a name. */
export function parseMember(member: Member): ParsedLine {
  const { bytes, problem } = member;
  if (problem !== undefined) return { problem };
  if (bytes?.[firstIn(bytes)] !== quote) return parseLine(member);
  const parsed = parseValue(Buffer.concat([Buffer.from('{'), bytes, Buffer.from('}')]));
  if ('problem' in parsed) return parsed;
  const [value] = Object.values(parsed.value as object);
  return isObject(value) ? { object: value } : { problem: 'not a JSON object' };
}

const quote = 0x22;

function firstIn(bytes: Buffer): number {
  return bytes.findIndex((byte) => byte > 0x20);
}
