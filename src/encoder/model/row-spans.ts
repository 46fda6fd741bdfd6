/** Finds the part of the text that each chunk, and each row of a sequence, comes from. */
import type { Spans } from '../protocol/row-places.ts';
import { chunkingProblem, tokenWindows, type TokenWindow } from './chunker.ts';
import { documentSequence, querySequence, type Sequence } from './colbert-rules.ts';
import type { ChunkingParameters } from '../protocol/contract.ts';
import type { ServedModel } from './served-model.ts';
import type { TokenPlaces } from './tokenizer/token-places.ts';

export interface LocatedChunk {
  readonly chunking: ChunkingParameters;
  readonly chunkIndex: number;
}

/** The tokens of a document. */
export interface DocumentTokens {
  readonly ids: Int32Array;
  /** In code points of the text. Absent where they are unknown. */
  readonly places?: TokenPlaces;
}

/** Where a chunk and those of its tokens that yield rows lie in the text of its document, in code points. */
export interface ChunkPlace {
  readonly start: number;
  readonly end: number;
  readonly tokens: Spans;
}

/** The parts of a model that tokenise a document. */
export interface DocumentModel {
  readonly rules: Pick<ServedModel['rules'], 'documentLead'>;
  readonly tokenizer: Pick<ServedModel['tokenizer'], 'encodeInSlices' | 'locateInSlices'>;
}

/** More bytes than most texts have for each token. */
const bytesPerToken = 6;
/** A text that is cut within its last word has other tokens there, at most so many. */
const cutWordTokens = 128;

/**
 * The tokens of a text. With `tokensMax` only the first tokens are wanted. Then those after them are right or left out, but there
 * are more than `tokensMax` of them exactly where the whole text has more. A Unigram model may cut a run of one character in another
 * way if the run is cut.
 */
export async function documentTokens(
  model: DocumentModel,
  text: string,
  signal: AbortSignal,
  tokensMax = Infinity,
): Promise<DocumentTokens> {
  const led = model.rules.documentLead + text;
  const enough = tokensMax + cutWordTokens;
  const unitsPerToken = (bytesPerToken * led.length) / Buffer.byteLength(led);
  for (let units = enough * unitsPerToken; units < led.length / 2; units *= 4) {
    const tokens = await tokensOf(model, led.slice(0, units).toWellFormed(), signal);
    if (tokens.ids.length > enough) return tokens;
  }
  return tokensOf(model, led, signal);
}

async function tokensOf(
  { rules, tokenizer }: DocumentModel,
  led: string,
  signal: AbortSignal,
): Promise<DocumentTokens> {
  const places = await tokenizer.locateInSlices(led, signal);
  if (places === undefined) return { ids: await tokenizer.encodeInSlices(led, signal) };
  if (rules.documentLead === '' && !/[\ud800-\udfff]/.test(led)) return { ids: places.ids, places };
  const points = codePointsBefore(led);
  const inText = (unit: number): number => Math.max(0, points[unit]! - points[rules.documentLead.length]!);
  return {
    ids: places.ids,
    places: { ...places, starts: places.starts.map(inText), ends: places.ends.map(inText) },
  };
}

/** The tokens of a query. `spans`: those of its rows, in UTF-16 units, if they are wanted and known. */
export async function queryTokens(
  { rules, tokenizer }: Pick<ServedModel, 'rules' | 'tokenizer'>,
  text: string,
  { located = false, signal }: { readonly located?: boolean; readonly signal: AbortSignal },
): Promise<{ readonly ids: Int32Array; readonly spans?: Spans }> {
  const led = rules.queryLead + text;
  const places = located ? await tokenizer.locateInSlices(led, signal) : undefined;
  if (places === undefined) return { ids: await tokenizer.encodeInSlices(led, signal) };
  const { starts, ends } = spansOfQuery(rules, places);
  const inText = (unit: number): number => Math.max(0, unit - rules.queryLead.length);
  return { ids: places.ids, spans: { starts: starts.map(inText), ends: ends.map(inText) } };
}

/** For each UTF-16 unit of the text and for its end, the number of code points before it. */
function codePointsBefore(text: string): Uint32Array {
  const points = new Uint32Array(text.length + 1);
  for (let unit = 0; unit < text.length; unit++) {
    // The second half of a pair counts for nothing.
    points[unit + 1] = points[unit]! + ((text.charCodeAt(unit) & 0xfc00) === 0xdc00 ? 0 : 1);
  }
  return points;
}

/** The place of a window of tokens, with the whole of words that it cuts. `sequence`: that of the window. */
export function placeOfChunk(
  rules: ServedModel['rules'],
  places: TokenPlaces,
  window: TokenWindow,
  sequence: Sequence,
): ChunkPlace {
  const { wordStarts } = places;
  let { start: first, end } = window;
  while (first > 0 && wordStarts[first] === 0) first--;
  while (end < wordStarts.length && wordStarts[end] === 0) end++;
  const tokens = spans(sequence, places, {
    head: rules.documentHead.length,
    first: window.start,
    end: window.end,
  });
  return { start: places.starts[first]!, end: places.ends[end - 1]!, tokens };
}

export function spansOfQuery(rules: ServedModel['rules'], places: TokenPlaces): Spans {
  return spans(querySequence(rules, places.ids), places, { head: rules.queryHead.length, first: 0 });
}

/** Returns undefined when the text has no such chunk. */
export function spansOfChunk(
  { rules, windowTokensMax }: Pick<ServedModel, 'rules' | 'windowTokensMax'>,
  places: TokenPlaces,
  chunk: LocatedChunk,
): Spans | undefined {
  if (chunkingProblem(chunk.chunking, windowTokensMax) !== undefined) return undefined;
  const window = [...tokenWindows(places.ids.length, chunk.chunking, windowTokensMax)][chunk.chunkIndex];
  if (window === undefined) return undefined;
  const sequence = documentSequence(rules, places.ids.subarray(window.start, window.end));
  return spans(sequence, places, { head: rules.documentHead.length, first: window.start, end: window.end });
}

function spans(
  sequence: Sequence,
  places: TokenPlaces,
  { head, first, end = places.ids.length }: { head: number; first: number; end?: number },
): Spans {
  const starts = new Uint32Array(sequence.rows);
  const ends = new Uint32Array(sequence.rows);
  let row = 0;
  for (let position = 0; position < sequence.ids.length; position++) {
    if (sequence.kept?.[position] === 0) continue;
    const token = first + position - head;
    if (position >= head && token < end && sequence.ids[position] === places.ids[token]) {
      starts[row] = places.starts[token]!;
      ends[row] = places.ends[token]!;
    }
    row++;
  }
  return { starts, ends };
}
