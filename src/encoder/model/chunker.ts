/**
 * Cuts the tokens of a document into windows.
 *
 * Windows of `maxTokens` advance by `maxTokens - overlapTokens`. The tokens at the end that no full window holds are the
 * remainder. A remainder shorter than `minimumChunkTokens` is joined to the window before it, which may then exceed `maxTokens` by
 * less than `minimumChunkTokens`. Where the model's positions do not allow that, the last window has `maxTokens` and begins
 * earlier instead. Every token lies in a window. A text of one token has one window, a text without tokens has none.
 */
import type { ChunkingParameters } from '../protocol/contract.ts';

export interface TokenWindow {
  /** First token. */
  readonly start: number;
  /** One past the last token. */
  readonly end: number;
}

/** Why these parameters cannot be used with a model of this window, or undefined. */
export function chunkingProblem(chunking: ChunkingParameters, windowTokensMax: number): string | undefined {
  const { maxTokens, overlapTokens, minimumChunkTokens } = chunking;
  if (!Number.isInteger(maxTokens) || maxTokens < 1 || maxTokens > windowTokensMax) {
    return `max_tokens must be from 1 to ${windowTokensMax}`;
  }
  if (!Number.isInteger(overlapTokens) || overlapTokens < 0 || overlapTokens >= maxTokens) {
    return 'overlap_tokens must be from 0 to max_tokens - 1';
  }
  if (!Number.isInteger(minimumChunkTokens) || minimumChunkTokens < 0 || minimumChunkTokens > maxTokens) {
    return 'minimum_chunk_tokens must be from 0 to max_tokens';
  }
  return undefined;
}

export interface WindowedText {
  readonly windows: number;
  /** In all windows together. */
  readonly tokens: number;
}

/** The windows of a text. Not exact for the last ones. */
export function windowedText(tokens: number, { maxTokens, overlapTokens }: ChunkingParameters): WindowedText {
  const furtherWindows = Math.max(0, Math.ceil((tokens - maxTokens) / (maxTokens - overlapTokens)));
  return { windows: Math.min(tokens, 1) + furtherWindows, tokens: tokens + furtherWindows * overlapTokens };
}

/** The windows of a text of `tokens` tokens, in order. They are made lazily, because a long text has thousands. */
export function* tokenWindows(
  tokens: number,
  chunking: ChunkingParameters,
  windowTokensMax: number,
): Generator<TokenWindow, void, undefined> {
  const { maxTokens, overlapTokens, minimumChunkTokens } = chunking;
  if (tokens === 0) return;
  let start = 0;
  for (;;) {
    const end = Math.min(start + maxTokens, tokens);
    const remainder = tokens - end;
    if (remainder === 0) {
      yield { start, end };
      return;
    }
    if (remainder < minimumChunkTokens && tokens - start <= windowTokensMax) {
      yield { start, end: tokens };
      return;
    }
    yield { start, end };
    if (remainder < minimumChunkTokens && remainder + overlapTokens <= maxTokens) {
      yield { start: tokens - maxTokens, end: tokens };
      return;
    }
    start = end - overlapTokens;
  }
}
