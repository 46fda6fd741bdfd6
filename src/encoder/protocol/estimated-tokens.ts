/** A text has about this many bytes for each token. */
const bytesPerToken = 4;

/** About how many tokens a text has that no tokenizer has seen yet. */
export function estimatedTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}
