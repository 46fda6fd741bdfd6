/**
 * Merges a patch into stored metadata, as RFC 7396 says: null removes a field, an object merges into the object that is there,
 * and every other value replaces. Both stay text, so numbers keep the digits with which they were written.
 */
import { invalid } from '../../errors.ts';
import { objectTextOf, writtenMembers } from '../../index/terms/canonical-json.ts';
import { metadataBytesMax, type JsonObjectText } from '../contract.ts';

/** The result nests no deeper than the deeper of the two. */
export function mergedMetadata(stored: JsonObjectText, patch: JsonObjectText): JsonObjectText {
  const merged = mergePatch(stored, patch);
  const bytes = Buffer.byteLength(merged);
  if (bytes > metadataBytesMax) {
    const message = `the metadata would have ${bytes} bytes, at most ${metadataBytesMax} are allowed`;
    throw invalid('metadata_merge', message, 'too_big');
  }
  return merged;
}

function mergePatch(target: string, patch: string): string {
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
