/** Archives taken apart and put together, also as no backup writes them. */
import { decodeHeader, encodeHeader, paddingOf } from '../../../src/cli/backup/archive-format.ts';

export interface ArchivedFile {
  readonly name: string;
  readonly content: Buffer;
}

/** The entries of an archive, for archives that differ from it. */
export function entriesOf(archive: Buffer): readonly ArchivedFile[] {
  const files: ArchivedFile[] = [];
  for (let at = 0; ;) {
    const header = decodeHeader(archive.subarray(at, at + 512));
    if (header === undefined) return files;
    files.push({ name: header.name, content: archive.subarray(at + 512, at + 512 + header.bytes) });
    at += 512 + header.bytes + paddingOf(header.bytes);
  }
}

export function archiveOf(files: readonly ArchivedFile[]): Buffer {
  const parts = files.flatMap(({ name, content }) => [
    encodeHeader({ name, bytes: content.length, modified: new Date(0) }),
    content,
    Buffer.alloc(paddingOf(content.length)),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}
