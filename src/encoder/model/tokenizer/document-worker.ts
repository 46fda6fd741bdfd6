/** The worker thread that tokenises documents. Documents that come together take turns, as `encodeInSlices` says. */
import { parentPort, workerData } from 'node:worker_threads';
import { assertInvariant } from '../../../errors.ts';
import {
  documentTokenizer,
  type TokenizedModel,
  type TokenizerReply,
  type TokenizerRequest,
} from './document-tokenizer.ts';
import { createTokenizer, type Tokenizer, type TokenizerOptions } from './tokenizer.ts';

assertInvariant(parentPort !== null, 'the document worker runs in a worker thread');
const port = parentPort;
/** Models with the same tokenizer have the same object of options. */
const tokenizers = new Map<TokenizerOptions, Tokenizer>();
const tokenize = documentTokenizer(
  (workerData as readonly TokenizedModel[]).map(({ documentLead, options }) => {
    const tokenizer = tokenizers.get(options) ?? createTokenizer(options);
    tokenizers.set(options, tokenizer);
    return { rules: { documentLead }, tokenizer };
  }),
);
const open = new Map<number, AbortController>();

port.on('message', (request: TokenizerRequest) => {
  const { id, text } = request;
  if (text === undefined) open.get(id)?.abort();
  else void answer({ ...request, text });
});
port.postMessage('ready');

async function answer({
  id,
  modelIndex,
  text,
  tokensMax,
}: TokenizerRequest & { readonly text: string }): Promise<void> {
  const controller = new AbortController();
  open.set(id, controller);
  try {
    const tokens = await tokenize(modelIndex, text, controller.signal, tokensMax);
    const { ids, places } = tokens;
    const arrays = places ? [ids, places.starts, places.ends, places.wordStarts] : [ids];
    port.postMessage(
      { id, tokens } satisfies TokenizerReply,
      arrays.map(({ buffer }) => buffer as ArrayBuffer),
    );
  } catch (error) {
    port.postMessage({ id, message: (error as Error).message } satisfies TokenizerReply);
  }
  open.delete(id);
}
