/** `maxsimd index inspect`: shows the contents of an index, from the catalog and from its files. */
import type { IndexRow } from '../../catalog/contract.ts';
import type { IndexState } from '../../contracts/index-state.ts';
import { codebookPrefix, derivedEndings, segmentOfColumn } from '../../index/segments/derived-data.ts';
import { defaultIndexSettings } from '../../index/index-settings.ts';
import { planMerge, type MergePlan } from '../../index/merging/merge-policy.ts';
import { reportOf, type RecallReport } from '../../index/recall/index-recall.ts';
import { readRecall, recallFile } from '../../index/recall/recall-file.ts';
import type { SegmentInspection } from '../../index/engine/inspections.ts';
import { findInstalled, installedModels } from '../../encoder/model/installed-models.ts';
import { messageOf } from '../failure.ts';
import { costsOf, type IndexCosts } from './index-costs.ts';
import type { IndexAccess } from './index-access.ts';
import type { StoredSegment } from './stored-indexes.ts';
import { fields, mebibytes, table, type CommandResult } from '../output.ts';

interface InspectedSegment {
  readonly row: StoredSegment;
  readonly live: number;
  /** `undefined` if the file cannot be read. Then there is a problem. */
  readonly found: SegmentInspection | undefined;
  readonly problem: string | undefined;
  /** Codes and postings of the segment, by the ending of their file. */
  readonly derived: readonly { readonly name: string; readonly bytes: number }[];
  /** Columns of metadata on disk. In a cluster each node has its own, which are not known here. */
  readonly columns: { readonly files: number; readonly bytes: number };
  /** Size of the codebook of its codes; 0 = none, or not readable. */
  readonly centroids: number;
  /** Number of distinct filter terms in its postings; 0 = none, or not readable. */
  readonly terms: number;
}

interface InspectedIndex {
  readonly index: IndexRow;
  /** Whether the folders of models have its model version; `undefined` = the models are on the machines of the encoders. */
  readonly modelInstalled: boolean | undefined;
  readonly segments: readonly InspectedSegment[];
  /** Segments share codebooks. */
  readonly codebookBytes: number;
  readonly plan: MergePlan | undefined;
  /** As the server saved it last. */
  readonly recall: RecallReport | undefined;
  /** Unknown figures are absent, and `reason` says why. */
  readonly costs: Partial<IndexCosts> & Pick<IndexCosts, 'reason'>;
}

/** `modelFolders` is `undefined` if the models are on other machines. */
export async function inspectIndexes(
  access: IndexAccess,
  modelFolders: readonly string[] | undefined,
): Promise<CommandResult> {
  const installed = modelFolders && (await installedModels(modelFolders)).models;
  const inspected: InspectedIndex[] = [];
  for (const index of access.rows) {
    const found = await inspectIndex(access, index);
    const wanted = { name: index.model, version: index.modelVersion };
    const modelInstalled = installed && findInstalled(installed, wanted) !== undefined;
    if (found !== undefined) inspected.push({ ...found, modelInstalled });
  }
  return {
    document: { data: inspected.map(indexDocument) },
    text: inspected.length === 0 ? 'there is no index' : inspected.map(indexText).join('\n\n'),
    failed: inspected.some(({ segments }) => segments.some(({ problem }) => problem !== undefined)),
  };
}

/** Number of live versions of each segment. */
function liveRecords(state: IndexState): ReadonlyMap<number, number> {
  const live = new Map<number, number>();
  for (const [row, segmentId] of state.versions.segmentIds.entries()) {
    if (state.versions.died[row] === 0) live.set(segmentId, (live.get(segmentId) ?? 0) + 1);
  }
  return live;
}

async function inspectIndex(
  access: IndexAccess,
  index: IndexRow,
): Promise<Omit<InspectedIndex, 'modelInstalled'> | undefined> {
  const state = await access.stored.read(index.id);
  if (state === undefined) return undefined;
  const live = liveRecords(state);
  const segments: InspectedSegment[] = [];
  for (const row of state.segments) {
    const base = {
      row,
      live: live.get(row.id) ?? 0,
      ...derivedFiles(row),
      ...(await derivedCounts(access, row)),
    };
    try {
      const found = await access.engine.inspectSegment(await row.own.open(), {
        recordsReferenced: row.recordsReferenced,
        firstRecord: 0,
        verifyBytesMax: 0,
      });
      segments.push({ ...base, found, problem: undefined });
    } catch (error) {
      if (!(await access.stored.names(row))) continue;
      segments.push({ ...base, found: undefined, problem: messageOf(error) });
    }
  }
  const files = [...state.others, ...state.segments.flatMap((row) => row.derived)];
  const codebookBytes = bytesOf(files.filter(({ name }) => name.startsWith(codebookPrefix(index.id))));
  const sealed = segments.filter(({ found }) => found?.state === 'sealed');
  const costs = await sealedCosts(access, state, sealed);
  const recallOf = state.others.find(({ name }) => name === recallFile(index.id));
  // `index verify` says whether the file is damaged.
  const measured = recallOf && (await readRecall(recallOf, index.id).catch(() => undefined));
  const recall = measured && reportOf(measured);
  return { index, segments, codebookBytes, plan: nextMerge(segments), recall, costs };
}

async function sealedCosts(
  access: IndexAccess,
  state: IndexState,
  sealed: readonly InspectedSegment[],
): Promise<InspectedIndex['costs']> {
  const [first] = sealed;
  if (first?.found === undefined) return { plan: 'exact', reason: 'no segment is sealed' };
  const { unsearchable } = access.stored;
  if (unsearchable !== undefined) return { reason: unsearchable };
  return await costsOf(access, state, {
    shape: { dim: first.found.dim, rowBits: first.found.rowBits },
    segments: sealed.map(({ row }) => row),
    chunks: sealed.reduce((sum, { found }) => sum + (found?.chunks ?? 0), 0),
    hasCodes: sealed.some(({ centroids }) => centroids > 0),
  });
}

function derivedFiles({ blob, derived }: StoredSegment): Pick<InspectedSegment, 'derived' | 'columns'> {
  const files = derived.filter(({ name }) => name.startsWith(`${blob}.`));
  const columns = files.filter(({ name }) => segmentOfColumn(name) === blob);
  return {
    derived: files
      .filter((file) => !columns.includes(file))
      .map(({ name, bytes }) => ({ name: name.slice(blob.length + 1), bytes })),
    columns: { files: columns.length, bytes: bytesOf(columns) },
  };
}

async function derivedCounts(
  { engine }: IndexAccess,
  { blob, derived }: StoredSegment,
): Promise<Pick<InspectedSegment, 'centroids' | 'terms'>> {
  const open = async (ending: string): Promise<string> =>
    (await derived.find(({ name }) => name === blob + ending)?.open()) ?? '';
  const [codes, postings] = await Promise.allSettled([
    open(derivedEndings.codes).then((file) => engine.inspectCodes(file, false)),
    open(derivedEndings.postings).then((file) => engine.inspectPostings(file, false)),
  ]);
  // `index verify` says whether a file is missing or has another format.
  return {
    centroids: codes.status === 'fulfilled' ? codes.value.centroids : 0,
    terms: postings.status === 'fulfilled' ? postings.value.terms : 0,
  };
}

function nextMerge(segments: readonly InspectedSegment[]): MergePlan | undefined {
  const sealed = segments.flatMap(({ row, live, found }) =>
    found?.state === 'sealed'
      ? [
          {
            id: row.id,
            records: found.records,
            live,
            tokenVectors: found.tokenVectors,
            fileBytes: found.fileBytes,
            wasteSinceMs: undefined,
            unwritable: false,
          },
        ]
      : [],
  );
  return planMerge(sealed, { ...defaultIndexSettings, wasteAgeMsMax: Infinity });
}

/** Estimates the bytes of dead records. It assumes that all records of a segment have the same size. */
function wasteBytes({ found, live }: InspectedSegment): number {
  if (found === undefined || found.records === 0) return 0;
  return Math.round((found.recordBytes * (found.records - live)) / found.records);
}

function totals({ segments, codebookBytes }: Pick<InspectedIndex, 'segments' | 'codebookBytes'>) {
  const sum = (pick: (segment: InspectedSegment) => number): number =>
    segments.reduce((total, segment) => total + pick(segment), 0);
  const derived = sum((segment) => bytesOf(segment.derived) + segment.columns.bytes);
  return {
    segments: segments.length,
    sealed: segments.filter(({ row }) => row.state === 'sealed').length,
    records: sum(({ found }) => found?.records ?? 0),
    live: sum(({ live }) => live),
    chunks: sum(({ found }) => found?.chunks ?? 0),
    tokenVectors: sum(({ found }) => found?.tokenVectors ?? 0),
    fileBytes: sum(({ found }) => found?.fileBytes ?? 0),
    directoryBytes: sum(({ found }) => found?.directoryBytes ?? 0),
    derivedBytes: derived + codebookBytes,
    wasteBytes: sum(wasteBytes),
  };
}

function bytesOf(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

function perTokenVector({ tokenVectors }: { readonly tokenVectors: number }, bytes: number): number | null {
  return tokenVectors === 0 ? null : Math.round((bytes / tokenVectors) * 10) / 10;
}

function indexDocument(inspected: InspectedIndex): object {
  const { index, segments, plan, recall, costs } = inspected;
  const sum = totals(inspected);
  return {
    index_id: index.id,
    tenant_id: index.tenantId,
    name: index.name,
    status: index.status,
    model: index.model,
    model_version: index.modelVersion,
    model_installed: inspected.modelInstalled ?? null,
    documents: sum.live,
    segments_sealed: sum.sealed,
    chunks: sum.chunks,
    token_vectors: sum.tokenVectors,
    file_bytes: sum.fileBytes,
    directory_bytes: sum.directoryBytes,
    derived_bytes: sum.derivedBytes,
    waste_bytes: sum.wasteBytes,
    disk_bytes_per_token_vector: perTokenVector(sum, sum.fileBytes + sum.derivedBytes),
    memory_bytes_per_token_vector:
      costs.memoryBytes === undefined ? null : perTokenVector(sum, costs.memoryBytes),
    candidate_plan: costs.plan ?? null,
    candidate_plan_reason: costs.reason,
    recall: recall
      ? { at_10: recall.at10, at_100: recall.at100, searches: recall.comparisons, breadth: recall.breadth }
      : null,
    next_merge: plan === undefined ? null : { reason: plan.reason, segment_ids: plan.segmentIds },
    segments: segments.map((segment) => ({
      segment_id: segment.row.id,
      state: segment.row.state,
      records: segment.found?.records ?? null,
      live: segment.live,
      chunks: segment.found?.chunks ?? null,
      token_vectors: segment.found?.tokenVectors ?? null,
      dim: segment.found?.dim ?? null,
      row_bits: segment.found?.rowBits ?? null,
      file_bytes: segment.found?.fileBytes ?? null,
      directory_bytes: segment.found?.directoryBytes ?? null,
      waste_bytes: wasteBytes(segment),
      derived: segment.derived,
      columns: segment.columns.files,
      column_bytes: segment.columns.bytes,
      centroids: segment.centroids,
      filter_terms: segment.terms,
      problem: segment.problem ?? null,
    })),
  };
}

function indexText(inspected: InspectedIndex): string {
  const { index, modelInstalled, segments, plan, costs } = inspected;
  const sum = totals(inspected);
  const perChunk = sum.chunks === 0 ? 0 : (sum.directoryBytes + sum.derivedBytes) / sum.chunks;
  const summary = fields([
    ['index', `${index.id} (${index.name}), tenant ${index.tenantId}`],
    ['status', index.status],
    ['model', `${index.model}/${index.modelVersion}${modelInstalled === false ? ' (not installed)' : ''}`],
    ['documents', `${sum.live} in ${sum.chunks} chunks (${sum.records - sum.live} dead records)`],
    ['files', `${mebibytes(sum.fileBytes)} MiB, of it ${mebibytes(sum.wasteBytes)} MiB waste`],
    [
      'for searches',
      `${mebibytes(sum.directoryBytes)} MiB directory, ${mebibytes(sum.derivedBytes)} MiB derived: ${Math.round(perChunk)} bytes a chunk`,
    ],
    [
      'a token vector',
      `${perTokenVector(sum, sum.fileBytes + sum.derivedBytes) ?? 0} bytes on disk, ${memoryText(sum, costs)} in memory`,
    ],
    ['candidates', `${costs.plan ?? 'unknown'}: ${costs.reason}`],
    ['recall', recallText(inspected.recall)],
    [
      'next merge',
      plan === undefined ? 'none' : `for ${plan.reason}: segments ${plan.segmentIds.join(', ')}`,
    ],
  ]);
  const numeric = ['records', 'live', 'chunks', 'token vectors', 'MiB', 'waste MiB'];
  const rows = segments.map((segment) => [
    String(segment.row.id),
    segment.row.state,
    String(segment.found?.records ?? '?'),
    String(segment.live),
    String(segment.found?.chunks ?? '?'),
    String(segment.found?.tokenVectors ?? '?'),
    mebibytes(segment.found?.fileBytes ?? 0),
    mebibytes(wasteBytes(segment)),
    segment.problem ?? derivedText(segment),
  ]);
  return segments.length === 0
    ? summary
    : `${summary}\n${table(['segment', 'state', ...numeric, 'derived'], rows, numeric)}`;
}

function recallText(recall: RecallReport | undefined): string {
  if (recall === undefined) return 'not measured';
  const { at10, at100, comparisons, breadth } = recall;
  return `${at10.mean.toFixed(3)} at 10 (${at10.low.toFixed(3)} to ${at10.high.toFixed(3)}), ${at100.mean.toFixed(3)} at 100, from ${comparisons} searches, breadth ${breadth.toFixed(2)}`;
}

function memoryText(sum: { readonly tokenVectors: number }, costs: InspectedIndex['costs']): string {
  if (costs.plan === undefined) return 'unknown';
  return String(perTokenVector(sum, costs.memoryBytes ?? 0) ?? 0);
}

function derivedText({ derived, columns, centroids, terms }: InspectedSegment): string {
  const sizes = derived.map(({ name, bytes }) => `${name} ${mebibytes(bytes)} MiB`);
  if (columns.files > 0) sizes.push(`${columns.files} columns ${mebibytes(columns.bytes)} MiB`);
  const files = sizes.join(', ') || 'none';
  const counts = [
    ...(centroids === 0 ? [] : [`${centroids} centroids`]),
    ...(terms === 0 ? [] : [`${terms} filter terms`]),
  ];
  return counts.length === 0 ? files : `${files} (${counts.join(', ')})`;
}
