/**
 * Our side of the benchmark. One encoder process is called from this process. Each of several is called from a process of its own,
 * as the api processes of a host do it, because one client is slower than several encoders. Each pair has its share of the texts.
 */
import type { ServedModel } from '../../src/encoder/model/served-model.ts';
import { sum } from '../lib/statistics.ts';
import type { Contender, Mix } from './contender.ts';
import { openPair } from './maxsimd-contender.ts';
import { openPeers, type PeerOptions } from './peer-contender.ts';

export async function openMaxsimd(
  model: ServedModel,
  options: Omit<PeerOptions, 'library'>,
  processes: number,
): Promise<Contender> {
  if (processes === 1) return openPair({ ...options, model });
  const { device } = options;
  const threads = Math.max(1, Math.floor(device.threads / processes));
  const open = (): Contender =>
    openPeers(['maxsimd'], { ...options, library: 'maxsimd', device: { ...device, threads } }).maxsimd;
  return shared(Array.from({ length: processes }, open));
}

function shared(pairs: readonly Contender[]): Contender {
  return {
    prepare: async (mix) => {
      const chosen = await Promise.all(
        pairs.map(async (pair, turn) => pair.prepare(shareOf(mix, turn, pairs.length))),
      );
      return `${pairs.length} processes, each ${chosen[0]}`;
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
