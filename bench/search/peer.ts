/** What the search benchmark asks of something it compares with. */
import type { Corpus } from './corpus.ts';
import type { Searcher } from './measure.ts';

/** One setting of a peer that is built and ready to search; good until the next one is asked for. */
export interface OperatingPoint {
  readonly variant: string;
  readonly settings: string;
  /** Chunks scored exactly at most, where the peer has such a number. */
  readonly candidateK: number | null;
  readonly buildSeconds: number;
  /** Disk beyond the vectors, or memory where it keeps nothing on disk. */
  readonly derivedBytes: number | null;
  readonly search: Searcher;
}

export interface PeerOptions {
  readonly corpus: Corpus;
  /** Chunks to return. */
  readonly topK: number;
  /** An empty directory of its own. */
  readonly directory: string;
  readonly threads: number;
  readonly onProgress: (line: string) => void;
}

export interface Peer {
  readonly name: string;
  /** Builds, and gives one setting after the other; the query rows given to it have length 1. */
  operatingPoints(options: PeerOptions): AsyncGenerator<OperatingPoint>;
}

/** Document of every chunk. */
export function documentOfChunks({ documentChunks }: Corpus): Uint32Array {
  const documents = new Uint32Array(documentChunks.at(-1) ?? 0);
  for (let document = 0; document + 1 < documentChunks.length; document++) {
    documents.fill(document, documentChunks[document], documentChunks[document + 1]);
  }
  return documents;
}
