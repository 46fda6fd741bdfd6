/** Writes an archive in a work directory, and shows the progress. */
import path from 'node:path';
import type { Problem } from '../index/findings.ts';
import { withByteProgress } from '../progress.ts';
import { ArchiveWriter } from './archive-writer.ts';
import type { BackupOptions, MadeBackup } from './backup.ts';

/** Name of the archive in the work directory. */
export const archiveFile = 'archive';

/** `fill` adds the files, and returns the problems that it finds in them. */
export async function withArchive(
  {
    work,
    version,
    keyPepper,
    bytesMax,
    signal,
    stderr,
  }: Pick<BackupOptions, 'version' | 'signal' | 'stderr'> & {
    readonly work: string;
    readonly keyPepper: Uint8Array | undefined;
    /** About the size of the archive. */
    readonly bytesMax: number;
  },
  fill: (archive: ArchiveWriter) => Promise<readonly Problem[]>,
): Promise<Pick<MadeBackup, 'bytes' | 'files' | 'problems'>> {
  return withByteProgress({ signal, stderr }, bytesMax, async (onBytes) => {
    const manifest = { maxsimd: version, key_pepper: keyPepper !== undefined };
    const archive = await ArchiveWriter.create(path.join(work, archiveFile), manifest, onBytes);
    try {
      const problems = await fill(archive);
      return { bytes: await archive.finish(), files: archive.entries, problems };
    } finally {
      await archive.close();
    }
  });
}
