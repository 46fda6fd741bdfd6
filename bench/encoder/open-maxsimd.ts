/**
 * Our side of the benchmark. One encoder process is called from this process, or from several, when one client would be slower
 * than it. Each of several encoder processes is called from a process of its own. Each client has its share of the texts.
 */
import type { ServedModel } from '../../src/encoder/model/served-model.ts';
import { startEncoder } from '../lib/model/encoder-pool.ts';
import { processSeconds } from '../lib/service/process-counters.ts';
import { sum } from '../lib/statistics.ts';
import type { Contender, Mix } from './contender.ts';
import { openPair } from './maxsimd-contender.ts';
import { openPeers, type PeerOptions } from './peer-contender.ts';

export async function openMaxsimd(
  model: ServedModel,
  options: Omit<PeerOptions, 'library'>,
  { processes, clients }: { readonly processes: number; readonly clients: number },
): Promise<Contender> {
  if (processes > 1 && clients > 1) throw new Error('--clients is of one encoder process');
  if (clients > 1) return openClients(options, clients);
  if (processes === 1) return openPair({ ...options, model });
  const { device } = options;
  const threads = Math.max(1, Math.floor(device.threads / processes));
  const open = (): Contender =>
    openPeers(['maxsimd'], { ...options, library: 'maxsimd', device: { ...device, threads } }).maxsimd;
  return shared(Array.from({ length: processes }, open));
}

async function openClients(options: Omit<PeerOptions, 'library'>, clients: number): Promise<Contender> {
  const encoder = await startEncoder(options.modelDirectory, options.device);
  const open = (): Contender =>
    openPeers(['maxsimd'], { ...options, library: 'maxsimd', address: encoder.addresses[0] }).maxsimd;
  const all = shared(Array.from({ length: clients }, open));
  const encoderSeconds = (): number => sum(encoder.processIds().map(processSeconds));
  return {
    ...all,
    round: async () => {
      const before = encoderSeconds();
      const { wallSeconds, cpuSeconds: ofClients } = await all.round();
      const cpuSeconds = ofClients === undefined ? undefined : ofClients + encoderSeconds() - before;
      return { wallSeconds, cpuSeconds };
    },
    close: async () => {
      await all.close();
      await encoder.close();
    },
  };
}

function shared(pairs: readonly Contender[]): Contender {
  return {
    prepare: async (mix) => {
      const chosen = await Promise.all(
        pairs.map(async (pair, turn) => pair.prepare(shareOf(mix, turn, pairs.length))),
      );
      return `${pairs.length} clients, each ${chosen[0]}`;
    },
    round: async () => {
      const startedAt = performance.now();
      const rounds = await Promise.all(pairs.map(async (pair) => pair.round()));
      const wallSeconds = (performance.now() - startedAt) / 1000;
      const cpuSeconds = sum(rounds.map((round) => round.cpuSeconds ?? Number.NaN));
      return { wallSeconds, cpuSeconds: Number.isNaN(cpuSeconds) ? undefined : cpuSeconds };
    },
    // The first texts of a mix are those of the first pair.
    vectors: async (texts) => pairs[0]!.vectors(texts),
    close: async () => {
      await Promise.all(pairs.map(async (pair) => pair.close()));
    },
  };
}

function shareOf(mix: Mix, turn: number, of: number): Mix {
  const cut = (part: number): number => Math.floor((part * mix.texts.length) / of);
  const [from, to] = [cut(turn), cut(turn + 1)];
  return { ...mix, texts: mix.texts.slice(from, to), sequences: mix.sequences.slice(from, to) };
}
