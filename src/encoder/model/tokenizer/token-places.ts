/**
 * Finds where the tokens of a text lie in it. A BERT normaliser moves nothing beyond a character and the marks that follow it. So
 * each unit of the normalised text comes from one such cluster, and the pieces of a word follow one another. The caller must
 * compare the ids with those of the tokenizer. If they differ, the places are unknown.
 */
import { forEachBertWord } from './bert-text.ts';
import type { WordPieces } from './word-pieces.ts';

/** Places in UTF-16 units: token i comes from `text.slice(starts[i], ends[i])`. */
export interface TokenPlaces {
  readonly ids: Int32Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  /** 1 = the token is the first of its word. */
  readonly wordStarts: Uint8Array;
}

/** Lengths of pieces, by id. */
export interface PieceLengths {
  readonly first: Uint16Array;
  readonly further: Uint16Array;
}

/** The lengths at the beginning of a word and further on. They are computed at the first use, because few tokenizers need them. */
export function createPieceLengths(
  vocabulary: ReadonlyMap<string, number>,
  prefix: string,
): () => PieceLengths {
  let lengths: PieceLengths | undefined;
  return () => {
    if (lengths !== undefined) return lengths;
    let last = 0;
    for (const id of vocabulary.values()) last = Math.max(last, id);
    lengths = { first: new Uint16Array(last + 1), further: new Uint16Array(last + 1) };
    for (const [piece, id] of vocabulary) {
      lengths.first[id] = piece.length;
      lengths.further[id] = Math.max(0, piece.length - prefix.length);
    }
    return lengths;
  };
}

/** Places that are still being found. */
export interface FoundPlaces {
  readonly ids: number[];
  readonly starts: number[];
  readonly ends: number[];
  readonly wordStarts: number[];
}

/** A character, and what the normaliser drops or may reorder behind it: marks, controls, format characters. */
const clusterPattern = /[^][[\p{M}\p{Cc}\p{Cf}\p{Co}\ufffd]--[\t\n\r]]*/gv;
/** Characters of a step, which takes at most about 1 ms. */
const stepCharacters = 1024;
/** Characters that the normaliser replaces by one each. The last of them has no mark behind it. */
const plainPattern = /[\n\r\t -~]{1,1024}(?![^\n\r\t -~])/y;

/** Finds the places of a text in steps. It yields where the event loop may have a turn. */
export function* locateBertTokens(
  text: string,
  options: {
    readonly normalize: (text: string) => string;
    readonly appendPieces: WordPieces;
    readonly pieces: () => PieceLengths;
    readonly unknownId: number;
  },
  { ids, starts, ends, wordStarts }: FoundPlaces,
): Generator<void, void, undefined> {
  const clusters: Clusters = { normal: [], starts: [], ends: [] };
  yield* normalizeByCluster(text, options.normalize, clusters);
  const { starts: clusterStarts, ends: clusterEnds } = clusters;
  const normal = clusters.normal.join('');
  const { first, further } = options.pieces();
  const take = (from: number, to: number): void => {
    const word = ids.length;
    options.appendPieces(normal, from, to, ids);
    for (let piece = word, at = from; piece < ids.length; piece++) {
      const id = ids[piece]!;
      // A word that has no pieces is one unknown token.
      const isWhole = id === options.unknownId && ids.length === word + 1;
      const end = isWhole ? to : Math.min(to, at + ((piece === word ? first : further)[id] ?? 0));
      starts.push(clusterStarts[at] ?? text.length);
      ends.push(clusterEnds[end - 1] ?? text.length);
      wordStarts.push(piece === word ? 1 : 0);
      at = end;
    }
  };
  for (let from = 0; from < normal.length; yield) {
    from = forEachBertWord(normal, { from, enough: from + stepCharacters }, take);
  }
}

/** A normalised text. For each of its units, the start and end of the part that it comes from. */
interface Clusters {
  readonly normal: string[];
  readonly starts: number[];
  readonly ends: number[];
}

function* normalizeByCluster(
  text: string,
  normalize: (text: string) => string,
  into: Clusters,
): Generator<void, void, undefined> {
  const known = new Map<string, string>();
  const normalized = (character: string): string => {
    let normal = known.get(character);
    if (normal === undefined) known.set(character, (normal = normalize(character)));
    return normal;
  };
  let stepAt = stepCharacters;
  /** Where the units of the last part of the cluster begin. */
  let last = 0;
  let at = 0;
  const add = ({ written, normal }: Part): void => {
    // A mark that leaves nothing belongs to the part before it.
    if (normal === '') into.ends.fill(at + written.length, last);
    else last = into.ends.length;
    for (let unit = 0; unit < normal.length; unit++) {
      into.starts.push(at);
      into.ends.push(at + written.length);
    }
    into.normal.push(normal);
    at += written.length;
  };
  while (at < text.length) {
    plainPattern.lastIndex = at;
    if (plainPattern.test(text)) {
      const end = plainPattern.lastIndex;
      into.normal.push(normalize(text.slice(at, end)));
      for (; at < end; at++) {
        into.starts.push(at);
        into.ends.push(at + 1);
      }
      yield;
      continue;
    }
    const written = text.slice(at, clusterEnd(text, at));
    last = into.ends.length;
    if (written.length === 1) add({ written, normal: normalized(written) });
    else partsOf(written, normalize, normalized).forEach(add);
    if (at < stepAt) continue;
    stepAt = at + stepCharacters;
    yield;
  }
}

interface Part {
  readonly written: string;
  readonly normal: string;
}

/** A cluster in the smallest parts that are normalised independently: its characters, or its marks together, or all. */
function partsOf(
  cluster: string,
  normalize: (text: string) => string,
  normalized: (character: string) => string,
): Part[] {
  const characters = Array.from(cluster);
  const single = characters.map((written) => ({ written, normal: normalized(written) }));
  const [first] = single;
  if (characters.length === 1) return single;
  const normal = normalize(cluster);
  const marks = cluster.slice(first!.written.length);
  for (const parts of [single, [first!, { written: marks, normal: normalize(marks) }]]) {
    if (parts.map((part) => part.normal).join('') === normal) return parts;
  }
  return [{ written: cluster, normal }];
}

function clusterEnd(text: string, at: number): number {
  clusterPattern.lastIndex = at;
  clusterPattern.test(text);
  return clusterPattern.lastIndex;
}
