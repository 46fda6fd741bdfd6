/**
 * What a backup costs: its speed and that of a restore beside `cp -a` of the same directory, and what searches lose while
 * it goes on. All take turns; searches go on for as long undisturbed as during the backup before.
 */
import { execFile, execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { scratchFolder } from '../lib/endings.ts';
import { describeEnvironment, root } from '../lib/environment.ts';
import { integer } from '../lib/options.ts';
import { quantile, spread, type Spread } from '../lib/statistics.ts';
import { openStoreStage, type StoreStage } from './stage.ts';

const settings = {
  documents: integer(12_000, 'documents of one chunk each'),
  dim: integer(128, 'dimensions of a token vector'),
  rows: integer(256, 'token vectors of a document'),
  rounds: integer(5, 'rounds'),
};

export const backup = benchmark({
  name: 'backup',
  summary: 'backup and restore beside a copy, and searches meanwhile',
  settings,
  run,
  render: (report) => `${JSON.stringify({ ...report, environment: undefined }, null, 2)}\n`,
});

const entry = path.join(root, 'src/cli/main.ts');
/** Nothing is rewritten or built meanwhile. */
const quiet = { wasteAgeMsMax: Number.MAX_SAFE_INTEGER, codesTokenVectorsMin: Infinity };

type OpenIndex = Awaited<ReturnType<StoreStage['open']>>;

const searchPauseMs = 5;

interface Round {
  readonly copyMs: number;
  readonly backupMs: number;
  readonly restoreMs: number;
  readonly during: readonly number[];
  readonly undisturbed: readonly number[];
}

async function run(options: OptionsOf<typeof settings>): Promise<object> {
  const { documents, dim, rows, rounds, command, environment, onProgress } = options;
  await using stage = await openStoreStage({ documents, dim, rows });
  using folder = scratchFolder('bench-backup');
  const index = await stage.open({ ...quiet, copyBytesPerSecond: Infinity });
  await stage.fill(index, () => undefined);
  await index.settled();
  const bytes = Number(execFileSync('du', ['-sb', stage.directory], { encoding: 'utf8' }).split('\t')[0]);
  onProgress(`${bytes} bytes`);
  const measured: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    measured.push(await measure(stage, index, folder.path, environment));
    onProgress(`round ${round + 1}`);
  }
  await stage.close(index);
  const speeds = (of: (round: Round) => number): Spread =>
    spread(measured.map((round) => bytes / 1e3 / of(round)));
  const p99 = (times: readonly number[]): number => quantile(times, 0.99);
  return {
    environment: describeEnvironment(command, stage.kernel, []),
    bytes,
    megabytes_per_second: {
      copy: speeds(({ copyMs }) => copyMs),
      backup: speeds(({ backupMs }) => backupMs),
      restore: speeds(({ restoreMs }) => restoreMs),
    },
    searches: {
      undisturbed_p99_ms: spread(measured.map(({ undisturbed }) => p99(undisturbed))),
      during_p99_ms: spread(measured.map(({ during }) => p99(during))),
      p99_ratio: spread(measured.map(({ during, undisturbed }) => p99(during) / p99(undisturbed))),
    },
  };
}

async function measure(
  stage: StoreStage,
  index: OpenIndex,
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Round> {
  const [copy, archive, restored] = ['copy', 'a.tar', 'restored'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  const timed = async (directory: string, program: string, ...args: readonly string[]): Promise<number> => {
    const began = performance.now();
    const env = { ...environment, MAXSIMD_DATA_DIR: directory };
    await promisify(execFile)(program, args, { env });
    return performance.now() - began;
  };
  // A copy is worth as much when it is on the disk.
  const copyMs = await timed('', 'sh', '-c', `cp -a "${stage.directory}" "${copy}" && sync -f "${copy}"`);
  rmSync(copy, { recursive: true });
  const takeBackup = (): Promise<number> =>
    timed(stage.directory, process.execPath, entry, 'backup', archive, '--with-key-pepper');
  const backupMs = await takeBackup();
  const over = new AbortController();
  const during: number[] = [];
  const meanwhile = searchUntil(stage, index, over.signal, during);
  const lastsMs = await takeBackup();
  over.abort();
  await meanwhile;
  const undisturbed: number[] = [];
  await searchUntil(stage, index, AbortSignal.timeout(Math.ceil(lastsMs)), undisturbed);
  const restoreMs = await timed(restored, process.execPath, entry, 'restore', archive);
  rmSync(restored, { recursive: true });
  rmSync(archive);
  return { copyMs, backupMs, restoreMs, during, undisturbed };
}

/** Searches of a hundred documents each, at least one. */
async function searchUntil(
  stage: StoreStage,
  index: OpenIndex,
  over: AbortSignal,
  times: number[],
): Promise<void> {
  do {
    times.push((await stage.search(index, times.length)).ms);
    await pause(searchPauseMs);
  } while (!over.aborted);
}
