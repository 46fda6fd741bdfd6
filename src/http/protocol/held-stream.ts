import type { Readable } from 'node:stream';

/**
 * Pauses a stream until the returned function is called, even if Node resumes it. Node does so if it wants more of a
 * body, or if the body of an answered request was not read.
 */
export function holdStream(stream: Pick<Readable, 'pause' | 'resume' | 'on' | 'off'>): () => void {
  const pause = (): void => void stream.pause();
  stream.on('resume', pause);
  pause();
  return () => {
    stream.off('resume', pause).resume();
  };
}
