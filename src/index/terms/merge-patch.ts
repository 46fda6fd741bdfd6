/**
 * A merge patch (RFC 7396) on the text of an object: null removes a field, an object merges into the object that is there, and
 * every other value replaces. Values stay as they are written, so numbers keep their digits. Of a name that stands twice in a
 * stored object the last value counts. The result nests no deeper than the deeper of the two.
 */
import { objectTextOf, writtenMembers } from './canonical-json.ts';

export function mergePatch(target: string, patch: string): string {
  const members = writtenMembers(target);
  for (const [name, member] of writtenMembers(patch)) {
    const before = members.get(name);
    if (member.value === 'null') members.delete(name);
    else if (member.value.startsWith('{')) {
      const inner = before?.value.startsWith('{') === true ? before.value : '{}';
      members.set(name, { ...member, value: mergePatch(inner, member.value) });
    } else members.set(name, member);
  }
  return objectTextOf(members.values());
}
