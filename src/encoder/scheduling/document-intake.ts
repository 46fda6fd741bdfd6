/**
 * Takes the documents of a request as they come from the tokenizer: cuts long ones, if the request wants that, counts the work of
 * the others, and refuses more than an encoder may hold.
 */
import { rowsLeftMax, storedRowBytes } from '../../contracts/row-shape.ts';
import { windowedText, type WindowedText } from '../model/chunker.ts';
import type { ServedModel } from '../model/served-model.ts';
import type { TokenizedDocument } from '../model/tokenizer/document-tokenizer.ts';
import type { ChunkingParameters } from '../protocol/contract.ts';
import { cutAt, type TokenCut } from '../protocol/token-cut.ts';
import { requestBounds } from '../protocol/wire.ts';
import { EncoderFailure } from './encoder-failure.ts';

/** More tokens than any text has. */
const longest = 2 ** 32 - 1;

export class DocumentIntake {
  readonly #model: ServedModel;
  readonly #chunking: ChunkingParameters;
  readonly #cut: TokenCut | undefined;
  readonly #onWork: (positions: number) => void;
  #documents: TokenizedDocument[] = [];
  readonly #wholeCounts: number[] = [];
  #wholeTokens = 0;
  #windowTokens = 0;
  #rows = 0;

  /** `onWork`: called with the positions that are to be run of each document. It may throw. */
  constructor(
    model: ServedModel,
    { chunking, cut }: { readonly chunking: ChunkingParameters; readonly cut?: TokenCut },
    onWork: (positions: number) => void,
  ) {
    this.#model = model;
    this.#chunking = chunking;
    this.#cut = cut;
    this.#onWork = onWork;
  }

  get documents(): readonly TokenizedDocument[] {
    return this.#documents;
  }

  /**
   * How many tokens of the next text may count. It has this many places in a list that fits if no text comes after it. The tokenizer
   * need not look at the others.
   */
  get tokensMaxOfNext(): number {
    if (this.#cut === undefined) return Infinity;
    const { documentTokensMax, tokensMax } = this.#cut;
    if (this.#wholeTokens + documentTokensMax <= tokensMax) return documentTokensMax;
    return cutAt([...this.#wholeCounts, longest], this.#cut);
  }

  /** Tokens of the texts, of one that is cut perhaps fewer, but more than it keeps; `undefined` if nothing was to be cut. */
  get wholeCounts(): Uint32Array | undefined {
    return this.#cut && Uint32Array.from(this.#wholeCounts);
  }

  take(document: TokenizedDocument): void {
    this.#wholeCounts.push(document.ids.length);
    this.#wholeTokens += document.ids.length;
    if (this.#wholeTokens > requestBounds.windowTokens) throw tooMuch(requestBounds.windowTokens, 'tokens');
    if (this.#cut === undefined) this.#count(document);
    this.#documents.push(withTokens(document, this.#cut?.documentTokensMax ?? Infinity));
  }

  /** Where a list is cut is known once all documents have come. */
  finish(): void {
    if (this.#cut === undefined) return;
    const tokensMax = cutAt(this.#wholeCounts, this.#cut);
    this.#documents = this.#documents.map((document) => withTokens(document, tokensMax));
    for (const document of this.#documents) this.#count(document);
  }

  /** How many positions are run for so many tokens of a text. */
  positionsOf(tokens: number): number {
    return this.#positionsIn(windowedText(tokens, this.#chunking));
  }

  /** Each window is run and stored with the tokens that it shares with others, and with special tokens of its own. */
  #positionsIn({ windows, tokens }: WindowedText): number {
    const { documentHead, tail } = this.#model.rules;
    return tokens + windows * (documentHead.length + tail.length);
  }

  #count({ ids }: TokenizedDocument): void {
    const windowed = windowedText(ids.length, this.#chunking);
    this.#windowTokens += windowed.tokens;
    if (this.#windowTokens > requestBounds.windowTokens) throw tooMuch(requestBounds.windowTokens, 'tokens');
    const positions = this.#positionsIn(windowed);
    this.#rows += rowsLeftMax({ vectors: positions, chunks: windowed.windows }, this.#model);
    if (this.#rows * storedRowBytes(this.#model) > requestBounds.storedBytes)
      throw tooMuch(requestBounds.storedBytes, 'bytes');
    this.#onWork(positions);
  }
}

/** The document with its first tokens alone. Places of the others are not looked at. */
function withTokens(document: TokenizedDocument, tokensMax: number): TokenizedDocument {
  return document.ids.length <= tokensMax ? document : { ...document, ids: document.ids.slice(0, tokensMax) };
}

function tooMuch(most: number, unit: 'tokens' | 'bytes'): EncoderFailure {
  return new EncoderFailure(
    'invalid',
    `the chunks of the documents hold more than ${most} ${unit}: send fewer at a time, or let chunks overlap less`,
  );
}
