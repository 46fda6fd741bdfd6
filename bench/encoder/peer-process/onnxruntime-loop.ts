/** The model file through bare onnxruntime-node, one text at a time, as a first version of a service would do it. */
import type { InferenceSession } from 'onnxruntime-node';
import type { ServedModel } from '../../../src/encoder/model/served-model.ts';
import type { BatchKind } from '../../../src/encoder/inference/session-protocol.ts';
import type { Contender, Mix, RoundTiming } from '../contender.ts';
import type { Device } from '../../lib/model/device.ts';
import { type Feeds, feedsOf, openSession, settingsFor } from '../../lib/model/onnxruntime-session.ts';
import { timed } from './timed.ts';

export async function openLoopPeer(model: ServedModel, device: Device): Promise<Contender> {
  return new Loop(model, await openSession(settingsFor(model, device)));
}

class Loop implements Contender {
  readonly #model: ServedModel;
  readonly #session: InferenceSession;
  #mix: Mix | undefined;

  constructor(model: ServedModel, session: InferenceSession) {
    this.#model = model;
    this.#session = session;
  }

  async prepare(mix: Mix): Promise<string> {
    this.#mix = mix;
    for (const text of mix.texts.slice(0, 8)) await this.#run(mix.kind, text);
    return "one text a run, the runtime's defaults";
  }

  async round(): Promise<RoundTiming> {
    const { kind, texts } = this.#prepared();
    return timed(async () => {
      for (const text of texts) await this.#run(kind, text);
    });
  }

  async vectors(count: number): Promise<readonly Float32Array[]> {
    const result: Float32Array[] = [];
    for (const text of this.#prepared().texts.slice(0, count)) {
      const outputs = await this.#session.run(this.#feeds(text), ['output']);
      result.push(outputs['output']!.data as Float32Array);
    }
    return result;
  }

  async close(): Promise<void> {
    // The process ends.
  }

  async #run(kind: BatchKind, text: string): Promise<void> {
    await this.#session.run(this.#feeds(text), fetchesOf(this.#model, kind));
  }

  #feeds(text: string): Feeds {
    const { head, tail } = this.#model.tokenizer;
    const ids = Int32Array.from([...head, ...this.#model.tokenizer.encode(text), ...tail]);
    return feedsOf({ ids, texts: 1, length: ids.length }, this.#model.session.usesTokenTypeIds);
  }

  #prepared(): Mix {
    if (this.#mix === undefined) throw new Error('this is a bug: no mix was prepared');
    return this.#mix;
  }
}

/** The outputs that our encoder takes for this kind. */
export function fetchesOf({ session }: ServedModel, kind: BatchKind): readonly string[] {
  const fused = [session.int8Output, session.scaleOutput];
  const plain = ['output', kind === 'query' ? session.tokenWeightOutput : undefined];
  const wanted = kind === 'document' && !fused.includes(undefined) ? fused : plain;
  return wanted.filter((name) => name !== undefined);
}
