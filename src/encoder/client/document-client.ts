/**
 * The client's side of one `EncodeDocuments` call to one encoder. It sends the documents, passes their token counts to the
 * caller, sends `proceed`, and yields each document when all of its parts have come. If the call fails, the pool calls it again
 * with the documents that are left, or with some of them.
 */
import { ServiceError } from '../../errors.ts';
import type { EncodedDocument, EncodeDocumentsOptions, EncoderModel } from '../protocol/contract.ts';
import type { DocumentStream, Endpoint } from './endpoint.ts';
import { MessageReader, writeMessage } from '../protocol/message-stream.ts';
import { CorruptReply, decodeCounts, DocumentCollector } from './replies.ts';
import type { TokenCut } from '../protocol/token-cut.ts';
import type { EncodeDocumentsRequest, EncodeDocumentsResponse } from '../protocol/wire.ts';

/** So many characters are written before the transport is waited for. So short documents leave together. */
const charactersAheadMax = 64 << 10;

export interface Unfinished {
  /** Documents that were not yielded yet, by their position in the caller's list. */
  readonly texts: Map<number, string>;
  /** The tokens of each document, once the caller has received them. */
  inputTokens: readonly number[] | undefined;
}

export interface Attempt {
  /** Positions of the documents that are sent. */
  readonly positions: readonly number[];
  /** Whether `proceed` was sent. */
  started: boolean;
}

/** Encodes unfinished documents. Each is removed from the list before it is yielded. */
export async function* encodeOnce(
  endpoint: Endpoint,
  model: EncoderModel,
  {
    unfinished,
    attempt,
    options,
  }: {
    readonly unfinished: Unfinished;
    readonly attempt: Attempt;
    readonly options: EncodeDocumentsOptions;
  },
): AsyncGenerator<EncodedDocument, void, undefined> {
  const { positions } = attempt;
  const texts = positions.map((position) => unfinished.texts.get(position)!);
  const { stream, ended, leave } = endpoint.documents(options);
  const messages = new MessageReader<EncodeDocumentsResponse>(stream, ended);
  let collector: DocumentCollector | undefined;
  try {
    // It is not awaited before the first read: an encoder that refuses the call answers, but reads no further.
    const sent = send(
      stream,
      endpoint.grouped,
      openMessage(positions.length, unfinished, options),
      texts,
      ended,
    );
    sent.catch(() => undefined);
    const { tokenCounts } = (await messages.next()) ?? {};
    if (!tokenCounts) throw new CorruptReply("the encoder's reply has no token counts");
    const counts = [...decodeCounts(tokenCounts.tokenCounts, positions.length)];
    // An encoder of an earlier release sends none.
    const unknownCounts =
      tokenCounts.unknownCounts.length === 0
        ? undefined
        : decodeCounts(tokenCounts.unknownCounts, positions.length);
    // Without a cut the texts are whole. An encoder of an earlier release cuts none.
    const wholeCounts =
      tokenCounts.wholeCounts.length === 0
        ? undefined
        : [...decodeCounts(tokenCounts.wholeCounts, positions.length)];
    await agree(unfinished, { positions, counts, wholeCounts }, options);
    await sent;
    attempt.started = true;
    stream.end({ proceed: {} } satisfies EncodeDocumentsRequest);
    collector = new DocumentCollector(model, counts, unknownCounts);
    for (let message = await messages.next(); message !== undefined; message = await messages.next()) {
      const parts = message.part ? [message.part] : message.parts;
      if (parts.length === 0) throw new CorruptReply("the encoder's reply has no part");
      for (const part of parts) {
        const document = collector.add(part);
        if (document === undefined) continue;
        const documentIndex = positions[document.documentIndex]!;
        unfinished.texts.delete(documentIndex);
        yield { ...document, documentIndex };
      }
    }
    if (!collector.complete) throw new CorruptReply("the encoder's reply ended before every document came");
  } finally {
    if (options.signal.aborted && collector !== undefined) options.onLeft?.(collector.tokensInPart);
    leave();
  }
}

/** Once the counts are known, the texts that are left are cut where they were cut before. */
function openMessage(
  documentCount: number,
  { inputTokens }: Unfinished,
  { model, tenantId, chunking, cut }: EncodeDocumentsOptions,
): EncodeDocumentsRequest {
  const { documentTokensMax = 0, tokensMax = 0 } =
    cut === undefined || inputTokens === undefined
      ? (cut ?? {})
      : { documentTokensMax: inputTokens.reduce((most, tokens) => Math.max(most, tokens), 1) };
  return {
    open: { model, tenantId, chunking, documentCount, grouped: true, documentTokensMax, tokensMax },
  };
}

async function send(
  stream: DocumentStream,
  grouped: boolean,
  open: EncodeDocumentsRequest,
  texts: readonly string[],
  ended: AbortSignal,
): Promise<void> {
  stream.write(open);
  const group: string[] = [];
  let characters = 0;
  for (const [place, text] of texts.entries()) {
    group.push(text.toWellFormed());
    characters += text.length;
    if (characters < charactersAheadMax && place < texts.length - 1) continue;
    await Promise.all(
      documentMessages(group.splice(0), grouped).map((each) => writeMessage(stream, each, ended)),
    );
    characters = 0;
  }
}

/** An encoder of an earlier release takes one text in a message. */
function documentMessages(
  [text = '', ...more]: readonly string[],
  grouped: boolean,
): EncodeDocumentsRequest[] {
  if (grouped) return [{ document: { text, more } }];
  return [text, ...more].map((one) => ({ document: { text: one, more: [] } }));
}

/** Passes the first counts to the caller, who may refuse. Later counts must be the same. */
async function agree(
  unfinished: Unfinished,
  {
    positions,
    counts,
    wholeCounts,
  }: {
    readonly positions: readonly number[];
    readonly counts: readonly number[];
    readonly wholeCounts: readonly number[] | undefined;
  },
  options: EncodeDocumentsOptions,
): Promise<void> {
  const known = unfinished.inputTokens;
  if (known === undefined) {
    if (options.cut !== undefined && wholeCounts === undefined) assertFits(counts, options.cut);
    await options.onTokenCounts(counts, wholeCounts ?? counts);
    unfinished.inputTokens = counts;
  } else if (positions.some((position, i) => known[position] !== counts[i])) {
    throw new ServiceError('service_unavailable', 'the encoders disagree about token counts', {
      retryAfterSeconds: 1,
    });
  }
}

/** An encoder of an earlier release cuts nothing. It serves lists that fit as they are. */
function assertFits(counts: readonly number[], { tokensMax }: TokenCut): void {
  if (counts.reduce((sum, tokens) => sum + tokens, 0) <= tokensMax) return;
  throw new ServiceError(
    'service_unavailable',
    `the texts have more than ${tokensMax} tokens together, and the encoder is of an earlier release, which cannot cut them`,
    { retryAfterSeconds: 60 },
  );
}
