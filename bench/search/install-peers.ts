/** Installs what the search benchmark compares with; USearch comes with the project itself. */
import path from 'node:path';
import { installedVersion, installLocked } from '../install-locked.ts';

export const peersDirectory = path.join(import.meta.dirname, 'peers');

/** Version of LanceDB; throws, with npm's words, when it cannot be installed. */
export function installPeers(onProgress: (line: string) => void): string {
  installLocked(peersDirectory, '0.6 GB', onProgress);
  return installedVersion(peersDirectory, '@lancedb/lancedb');
}
