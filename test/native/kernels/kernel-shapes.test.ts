/**
 * The shapes at which kernels go wrong (no chunk, one row, odd dimensions, blocks that are not full), on every instruction set of
 * the architecture: natively where this machine has it, and over emulated instructions.
 */
import { createRequire } from 'node:module';
import { beforeAll, expect, it } from 'vitest';
import { builtFile } from '../../../src/process/installation.ts';
import { announceRandom } from '../../support/running/random.ts';

interface Outcome {
  readonly name: string;
  readonly emulated: boolean;
  readonly faults: readonly string[];
}

type Outcomes = Readonly<Record<'kernels' | 'faulty' | 'others', readonly Outcome[]>>;

/** NEON has no emulation on Arm, where it is native, and the instructions of x86 have none there. */
const instructionSets: Readonly<Record<string, readonly string[]>> = {
  x64: ['amx', 'avx2', 'avx512vnni', 'avxvnni', 'neon', 'scalar'],
  arm64: ['neon', 'scalar'],
};

let outcomes: Outcomes;
beforeAll(() => {
  const addon = createRequire(import.meta.url)(builtFile('kernel-shapes.node')) as {
    readonly run: (seed: number) => Outcomes;
  };
  outcomes = addon.run(announceRandom('kernel shapes').seed);
});

it('every kernel takes no chunk, one row and odd dimensions', () => {
  const { kernels, others } = outcomes;
  const named = (emulated: boolean): string =>
    kernels.flatMap((kernel) => (kernel.emulated === emulated ? kernel.name : [])).join(', ');
  console.log(`native: ${named(false)}; emulated: ${named(true) || 'none'}`);
  expect([...kernels, ...others].flatMap(({ faults }) => faults)).toEqual([]);
  expect([...new Set(kernels.map(({ name }) => name))].toSorted()).toEqual(instructionSets[process.arch]);
});

it('a kernel that leaves its memory or gives another score is found', () => {
  const found = outcomes.faulty.map(({ name, faults }) => faults[0]?.replace(`${name}: `, '').split(' ')[0]);
  expect(Object.fromEntries(outcomes.faulty.map(({ name }, at) => [name, found[at]]))).toEqual({
    'reads the first of no chunks': 'maxsim',
    'reads behind the padding': 'best',
    'writes behind the scores': 'maxsim',
    'is wrong in the last of 33 rows': 'similarities',
  });
});
