/** Entry of a process that holds the sides of one library; a small remote procedure call over the IPC channel. */
import { z } from 'zod';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import type { Contender, Mix } from '../contender.ts';
import { openPair } from '../maxsimd-contender.ts';
import { openLoopPeer } from './onnxruntime-loop.ts';
import { openOneSession, openSessionPerCore } from './packed-peer.ts';
import type { PeerReply, PeerRequest } from '../peer-contender.ts';
import { openTransformersPeers } from './transformers-peer.ts';

const given = z
  .tuple([
    z.enum(['onnxruntime', 'transformers', 'maxsimd']),
    z.string(),
    z.string(),
    z.enum(['cpu', 'cuda']),
    z.coerce.number().int().min(0),
    z.coerce.number().int().min(1),
    z.string(),
    z.string(),
  ])
  .parse(process.argv.slice(2));

const opened = open();
process.on('message', (request: PeerRequest) => {
  void answer(request).then((reply) => process.send?.(reply));
});
process.on('disconnect', () => void end());

async function open(): Promise<Readonly<Record<string, Contender>>> {
  const [library, modelDirectory, peersDirectory, provider, index, threads, exportDirectory, address] = given;
  const device = { provider, index, threads };
  if (library === 'transformers') {
    return openTransformersPeers(modelDirectory, peersDirectory, threads, exportDirectory || undefined);
  }
  const model = await loadModel(modelDirectory);
  if (library === 'maxsimd')
    return { maxsimd: await openPair({ modelDirectory, model, device, address: address || undefined }) };
  return {
    packed_session_per_core: openSessionPerCore(model, device),
    packed_one_session: openOneSession(model, device),
    onnxruntime_loop: await openLoopPeer(model, device),
  };
}

async function end(): Promise<void> {
  await Promise.all(Object.values(await opened).map(async (contender) => contender.close()));
  process.exit(0);
}

async function answer({ id, contender, method, argument }: PeerRequest): Promise<PeerReply> {
  try {
    const peer = (await opened)[contender];
    if (peer === undefined) throw new Error(`there is no ${contender} here`);
    if (method === 'prepare') return { id, value: await peer.prepare(argument as Mix) };
    if (method === 'round') return { id, value: await peer.round() };
    return { id, value: await peer.vectors(argument as number) };
  } catch (error) {
    return { id, error: (error as Error).message };
  }
}
