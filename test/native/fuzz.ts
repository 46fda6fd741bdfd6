/**
 * The native readers of files under libFuzzer, each for so many seconds: `node test/native/fuzz.ts [SECONDS [TARGET]]`, an
 * hour each without. It begins with the corpus in the repository, `native/test/fuzz/corpus/TARGET.txt`, which every run of
 * the tests reads too; `--keep` at the end replaces it by what reaches more. Exits with 1 on any finding, whose bytes are
 * printed. Clang is Debian's, and installed where it is missing.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installMissingTools } from '../../deploy/local/debian-packages.ts';
import { buildNativeTests, repositoryRoot, run } from './native-build.ts';

const given = process.argv.slice(2).filter((argument) => argument !== '--keep');
const keeps = process.argv.includes('--keep');
const [seconds = '3600', only] = given;
const targets = {
  segment: 'fuzzSegment',
  postings: 'fuzzPostings',
  codes: 'fuzzCodes',
  'codebook-file': 'fuzzCodebookFile',
  codebook: 'fuzzCodebook',
  condition: 'fuzzCondition',
};
/** Inputs that are kept are short: the corpus stays at some kilobytes. */
const keptBytesMax = 48;
const inputBytesMax = 256;

const missing = installMissingTools({ 'clang++-16': 'clang-16', 'clang-16': 'libclang-rt-16-dev' });
if (missing !== undefined) throw new Error(`there is no clang: ${missing}`);
const programs = buildNativeTests('fuzz', 'address,undefined,fuzzer-no-link', [
  '-DCMAKE_CXX_COMPILER=clang++-16',
  '-DMAXSIMD_FUZZ=ON',
]);
for (const [name, program] of Object.entries(targets)) {
  if (only === undefined || only === name) fuzz(name, path.join(programs, program));
}

function fuzz(name: string, program: string): void {
  const work = path.join(repositoryRoot, 'build', 'fuzz', name);
  rmSync(work, { recursive: true, force: true });
  const folder = (part: string): string => path.join(work, part);
  for (const part of ['inputs', 'kept', 'findings', 'temporary'])
    mkdirSync(folder(part), { recursive: true });
  const corpus = path.join(repositoryRoot, 'native/test/fuzz/corpus', `${name}.txt`);
  for (const [at, line] of readFileSync(corpus, 'utf8').trim().split('\n').entries())
    writeFileSync(path.join(folder('inputs'), `${at}`), Buffer.from(line, 'hex'));
  // Files that a target changes a thousand times a second are no work for a disk.
  const memory = '/dev/shm';
  const env = { TMPDIR: existsSync(memory) ? memory : tmpdir() };
  const bounds = ['-timeout=60', '-rss_limit_mb=4096', `-artifact_prefix=${folder('findings')}/`];
  process.once('exit', () => {
    for (const finding of readdirSync(folder('findings'))) {
      const bytes = readFileSync(path.join(folder('findings'), finding));
      console.error(`${name}: ${finding}: ${bytes.toString('hex')}`);
    }
  });
  const length = [`-max_total_time=${seconds}`, `-max_len=${inputBytesMax}`, '-print_final_stats=1'];
  run(program, [...bounds, ...length, folder('inputs')], env);
  if (!keeps) return;
  const merge = ['-set_cover_merge=1', `-max_len=${keptBytesMax}`];
  run(program, [...bounds, ...merge, folder('kept'), folder('inputs')], env);
  const kept = readdirSync(folder('kept')).map((file) =>
    readFileSync(path.join(folder('kept'), file), 'hex'),
  );
  const sorted = kept.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1));
  writeFileSync(corpus, `${sorted.join('\n')}\n`);
}
