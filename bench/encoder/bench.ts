/**
 * `npm run bench -- encoder`: our encoder process over gRPC beside other programs with the same model file, on the same texts
 * and with as many threads. Within a round every side encodes the whole mix, in an order that rotates. So other work on the
 * machine disturbs all sides alike. A ratio is the median over rounds, and compares two sides of one round.
 */
import path from 'node:path';
import { parseConfig } from '../../src/app/config.ts';
import { runtimeVersion } from '../../src/encoder/inference/cuda/cuda-library.ts';
import { loadModel, type ServedModel } from '../../src/encoder/model/served-model.ts';
import { Rotation } from '../../src/encoder/inference/rows.ts';
import type { RowShape } from '../../src/contracts/row-shape.ts';
import { modelDirectoryOf } from '../../src/app/models/model-choice.ts';
import { describeEnvironment } from '../lib/environment.ts';
import { type Device, deviceName } from '../lib/model/device.ts';
import { installedVersion, installLocked } from '../lib/install-locked.ts';
import { beir, device, flag, integer, names, optional, without } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { readTexts } from '../lib/texts.ts';
import { pairedRatios, spread, type Spread } from '../lib/statistics.ts';
import { type Agreement, agreementOf } from '../lib/model/agreement.ts';
import type { Contender, Mix, RoundTiming } from './contender.ts';
import { makeMixes, mixShapes } from './mixes.ts';
import { openMaxsimd } from './open-maxsimd.ts';
import { openPeers } from './peer-contender.ts';
import { openPython } from './python-contender.ts';
import { pythonPeer } from './python-peer.ts';
import { renderTable, type EncoderReport, type EncoderRow, type RatioDetail } from './report.ts';

const peersDirectory = path.join(import.meta.dirname, 'peers');

const settings = {
  texts: integer(400, 'texts of a document mix; a query mix has four times as many'),
  rounds: integer(5, 'rounds'),
  mixes: names(
    mixShapes.map(({ name }) => name),
    'mixes to run',
  ),
  beir,
  device: device('cpu'),
  processes: integer(1, 'encoder processes of ours; several have a client process each'),
  clients: integer(1, 'client processes of our one encoder process'),
  alone: flag('measure our side alone'),
  peers: without('leave out the peers that are not among our own dependencies'),
  export: optional(
    'directory',
    'the output of models/export.py; without it Transformers.js runs our graph alone',
  ),
  python: optional('command', 'a Python 3 with the packages of bench/encoder/peers/requirements.txt'),
};

type Options = OptionsOf<typeof settings>;

export const encoder = benchmark({
  name: 'encoder',
  summary: 'our encoder process beside other programs with the same model',
  settings,
  run,
  render: renderTable,
});

const ours = 'maxsimd';
/** f32 on the source weights. Where it runs, accuracy is measured against it. */
const reference = 'sentence_transformers';

const transformersExports = ['transformers_js_export_int8', 'transformers_js_export_f32'] as const;

/** A goal of the project: our speed divided by that of the fastest contender. */
interface Goal {
  readonly name: string;
  readonly contenders: readonly string[];
  readonly mix: string;
  readonly target: number;
}

const packed: Goal = {
  name: 'packed_onnxruntime',
  contenders: ['packed_session_per_core', 'packed_one_session'],
  mix: 'documents_mixed',
  target: 0.9,
};
const goals: Readonly<Record<Device['provider'], readonly Goal[]>> = {
  cpu: [
    {
      name: 'transformers_js',
      contenders: ['transformers_js', ...transformersExports],
      mix: 'documents_mixed',
      target: 2,
    },
    packed,
  ],
  cuda: [
    {
      name: reference,
      contenders: [reference, `${reference}_f16`],
      mix: 'documents_mixed',
      target: 2,
    },
    packed,
  ],
};

const agreementTexts = 16;
/** The version of the default model that stores a row for each token, as the other sides give one. */
const plainRows = { MAXSIMD_MODEL: 'bge-small-maxsim/1' };

interface Sides {
  readonly contenders: ReadonlyMap<string, Contender>;
  readonly skipped: readonly { readonly contender: string; readonly reason: string }[];
  readonly runtimes: Readonly<Record<string, string>>;
}

async function run(options: Options): Promise<EncoderReport> {
  const modelDirectory = await modelDirectoryOf(parseConfig({ ...plainRows, ...options.environment }));
  const model = await loadModel(modelDirectory);
  const found = await readTexts(options.texts * 4, options.beir);
  const source = { documents: found.documents, queries: options.beir === undefined ? [] : found.queries };
  const mixes = makeMixes(model, { ...options, source });
  const { contenders, skipped, runtimes } = await openSides(options, modelDirectory, model);
  try {
    const rows: EncoderRow[] = [];
    for (const mix of mixes) rows.push(...(await measureMix(mix, contenders, model, options)));
    const details = Object.fromEntries(
      goals[options.device.provider].map((goal) => [goal.name, ratioOf(goal, rows)]),
    );
    return {
      environment: describeEnvironment(options.command, 'none', [options.device.threads]),
      settings: {
        model: `${model.name}/${model.version}`,
        device: deviceName(options.device),
        processes: options.processes,
        clients: options.clients,
        source: found.name,
        texts: options.texts,
        rounds: options.rounds,
        runtimes,
      },
      rows,
      skipped,
      ratios: Object.fromEntries(Object.entries(details).map(([name, { value }]) => [name, value])),
      ratio_details: details,
    };
  } finally {
    await Promise.all([...contenders.values()].map(async (contender) => contender.close()));
  }
}

async function openSides(
  { device: given, processes, clients, alone, peers, python, export: exportDirectory, onProgress }: Options,
  modelDirectory: string,
  model: ServedModel,
): Promise<Sides> {
  const contenders = new Map<string, Contender>();
  const skipped: { contender: string; reason: string }[] = [];
  const runtimes: Record<string, string> = { 'onnxruntime-node': runtimeVersion() };
  const process = { modelDirectory, peersDirectory, device: given };
  contenders.set(ours, await openMaxsimd(model, process, { processes, clients }));
  if (alone) return { contenders, skipped, runtimes };
  const bareNames = ['packed_session_per_core', 'packed_one_session', 'onnxruntime_loop'];
  // A GPU is not shared out by core.
  const bare = given.provider === 'cpu' ? bareNames : bareNames.slice(1);
  for (const [name, contender] of Object.entries(openPeers(bare, { ...process, library: 'onnxruntime' })))
    contenders.set(name, contender);
  const add = (contender: string, open: () => Readonly<Record<string, Contender>>): void => {
    try {
      for (const [name, opened] of Object.entries(open())) contenders.set(name, opened);
    } catch (error) {
      skipped.push({ contender, reason: (error as Error).message });
    }
  };
  add('transformers_js', () => {
    if (!peers) throw new Error('not asked for');
    if (given.provider === 'cuda') throw new Error('it runs on the CPU');
    installLocked(peersDirectory, '0.5 GB', onProgress);
    const version = (name: string): string => installedVersion(peersDirectory, name);
    const library = '@huggingface/transformers';
    runtimes[library] = `${version(library)} on onnxruntime-node ${version('onnxruntime-node')}`;
    const exported = exportDirectory === undefined ? [] : transformersExports;
    return openPeers(['transformers_js', ...exported], {
      ...process,
      library: 'transformers',
      exportDirectory,
    });
  });
  if (exportDirectory === undefined) {
    const reason = 'not asked for (--export)';
    skipped.push(...transformersExports.map((contender) => ({ contender, reason })));
  }
  add(reference, () => {
    if (python === undefined) throw new Error('not asked for (--python)');
    const peer = pythonPeer(python, peersDirectory);
    runtimes['python'] = peer.versions;
    const { threads } = given;
    const options = { peer, modelDirectory, threads, device: deviceName(given) };
    return {
      [reference]: openPython({ ...options, precision: 'f32' }),
      // A GPU is faster in half precision, and so are those who use one.
      ...(given.provider === 'cuda'
        ? { [`${reference}_f16`]: openPython({ ...options, precision: 'f16' }) }
        : {}),
    };
  });
  return { contenders, skipped, runtimes };
}

async function measureMix(
  mix: Mix,
  contenders: ReadonlyMap<string, Contender>,
  model: RowShape,
  { rounds, onProgress }: Options,
): Promise<readonly EncoderRow[]> {
  onProgress(`${mix.name}: ${mix.texts.length} texts, ${mix.contentTokens} tokens`);
  const chosen = new Map<string, string>();
  for (const [name, contender] of contenders) chosen.set(name, await contender.prepare(mix));
  const timings = new Map<string, RoundTiming[]>([...contenders.keys()].map((name) => [name, []]));
  const order = [...contenders.keys()];
  for (let round = 0; round < rounds; round++) {
    for (const name of order) timings.get(name)?.push(await contenders.get(name)!.round());
    order.push(order.shift()!);
    onProgress(`${mix.name}: round ${round + 1} of ${rounds}`);
  }
  const vectors = new Map<string, readonly Float32Array[] | undefined>();
  const rotation = model.rowBits === 8 ? undefined : new Rotation(model.dim);
  for (const [name, contender] of contenders) {
    const given = await contender.vectors(agreementTexts);
    if (name !== ours) for (const rows of given ?? []) rotation?.apply(rows);
    vectors.set(name, given);
  }
  const agreement = (name: string, other: string): Agreement | null => {
    const [mine, theirs] = [vectors.get(other), vectors.get(name)];
    return name === other || mine === undefined || theirs === undefined
      ? null
      : agreementOf(mine, theirs, model.dim);
  };
  const oursTimings = timings.get(ours)!;
  return [...timings].map(([name, theirs]): EncoderRow => {
    return {
      contender: name,
      mix: mix.name,
      kind: mix.kind,
      texts: mix.texts.length,
      tokens: mix.contentTokens,
      settings: chosen.get(name) ?? '',
      tokens_per_second: spread(wallSeconds(theirs).map((seconds) => mix.contentTokens / seconds)),
      texts_per_second: spread(wallSeconds(theirs).map((seconds) => mix.texts.length / seconds)),
      tokens_per_cpu_second: spreadOf(cpuSeconds(theirs).map((seconds) => mix.contentTokens / seconds)),
      ours_by_theirs:
        name === ours ? null : spread(pairedRatios(wallSeconds(theirs), wallSeconds(oursTimings))),
      ours_by_theirs_per_cpu_second:
        name === ours ? null : spreadOf(pairedRatios(cpuSeconds(theirs), cpuSeconds(oursTimings))),
      agreement_with_ours: agreement(name, ours),
      agreement_with_f32: agreement(name, reference),
    };
  });
}

function wallSeconds(timings: readonly RoundTiming[]): readonly number[] {
  return timings.map((timing) => timing.wallSeconds);
}

function cpuSeconds(timings: readonly RoundTiming[]): readonly number[] {
  return timings.map((timing) => timing.cpuSeconds ?? Number.NaN);
}

/** Null when a value is missing. */
function spreadOf(values: readonly number[]): Spread | null {
  return values.every((value) => Number.isFinite(value)) ? spread(values) : null;
}

/** The contender with the lowest ratio decides. */
export function ratioOf(
  { contenders, mix, target }: Omit<Goal, 'name'>,
  rows: readonly Pick<EncoderRow, 'contender' | 'mix' | 'ours_by_theirs' | 'ours_by_theirs_per_cpu_second'>[],
): RatioDetail {
  const ratios = rows.flatMap((row) =>
    row.mix === mix && row.ours_by_theirs !== null && contenders.some((name) => name === row.contender)
      ? [{ ...row, ours_by_theirs: row.ours_by_theirs }]
      : [],
  );
  const [strictest, ...others] = ratios.toSorted((a, b) => a.ours_by_theirs.median - b.ours_by_theirs.median);
  if (strictest === undefined) {
    return { value: null, mix, target, reason: `${contenders.join(', ')} did not run ${mix}` };
  }
  const { contender, ours_by_theirs, ours_by_theirs_per_cpu_second } = strictest;
  return {
    value: ours_by_theirs.median,
    mix,
    target,
    against: contender,
    spread: ours_by_theirs,
    per_cpu_second: ours_by_theirs_per_cpu_second,
    others: Object.fromEntries(others.map((row) => [row.contender, row.ours_by_theirs])),
  };
}
