/** Installs what the encoder benchmark compares with. */
import path from 'node:path';
import { installedVersion, installLocked } from '../install-locked.ts';

export const peersDirectory = path.join(import.meta.dirname, 'peers');

export interface PeerVersions {
  readonly transformers: string;
  /** Of the runtime that it brings. */
  readonly onnxruntime: string;
}

/** Versions of what is installed; throws, with npm's words, when it cannot be. */
export function installPeers(onProgress: (line: string) => void): PeerVersions {
  installLocked(peersDirectory, '0.5 GB', onProgress);
  return {
    transformers: installedVersion(peersDirectory, '@huggingface/transformers'),
    onnxruntime: installedVersion(peersDirectory, 'onnxruntime-node'),
  };
}
