/** A stream that is not read for a while, whoever else resumes it. */
import type { Readable } from 'node:stream';

/**
 * Reads nothing more until the function returned is called. Node resumes a connection of its own accord, as when it
 * wants more of a body, or when the body of an answered request was not read.
 */
export function holdStream(stream: Pick<Readable, 'pause' | 'resume' | 'on' | 'off'>): () => void {
  const pause = (): void => void stream.pause();
  stream.on('resume', pause);
  pause();
  return () => {
    stream.off('resume', pause).resume();
  };
}
