/** The report at the end of an import: counts, failures by line, and fields that are no part of a document. */
import { fields, oneLine, type CommandResult } from '../output.ts';
import type { ImportPosition } from './checkpoint.ts';
import type { DocumentProblem, DocumentReader } from './document.ts';
import { numbersMax } from './lean-metadata.ts';
import { unknownShare, type TokenTally } from './token-tally.ts';
import type { Preview } from './preview.ts';
import type { ColumnTypes, Mixed } from './sources/column-types.ts';
import type { Source } from './sources/source.ts';
import { countsText } from './sources/text.ts';

export interface ImportReport {
  readonly source: Source;
  /** Counts over all rows that were read. */
  readonly reader: DocumentReader;
  readonly preview: Preview;
  /** The index. A dry run knows its name alone. */
  readonly target: {
    readonly name: string;
    readonly id?: string;
    readonly created?: boolean;
  };
  readonly start: ImportPosition;
  position: ImportPosition;
  /** The first problems, with those of earlier runs. */
  readonly problems: DocumentProblem[];
  /** Documents of earlier imports that the cutting left behind. */
  deleted: number;
  readonly startedMs: number;
}

export interface ReportOptions {
  /** Where the import stopped, and how it goes on; `undefined` if the input was read to its end. */
  readonly stopped?: string | undefined;
  readonly stderr: NodeJS.WriteStream;
}

export function resultOf(report: ImportReport, { stopped, stderr }: ReportOptions): CommandResult {
  const { position, problems, source, reader } = report;
  for (const problem of problems) stderr.write(`${problem.file}:${problem.line}: ${describe(problem)}\n`);
  const unlisted = position.failed - problems.length;
  if (unlisted > 0) stderr.write(`${source.name}: ${unlisted} more failed\n`);
  const missing =
    stopped === undefined && source.rowsPromised !== undefined ? source.rowsPromised - reader.rows : 0;
  if (missing !== 0) {
    stderr.write(`${source.name}: has ${reader.rows} rows, its description says ${source.rowsPromised}\n`);
  }
  const seconds = (performance.now() - report.startedMs) / 1000;
  return {
    document: documentOf(report, seconds),
    text: textOf(report, seconds, stopped),
    failed: position.failed > 0,
  };
}

function documentOf(report: ImportReport, seconds: number): object {
  const { target, position, start, problems, source, reader, preview } = report;
  const sent = {
    index_id: target.id,
    index_created: target.created,
    done: position.done,
    failed: position.failed,
    resumed: start.done + start.failed,
    deleted: report.deleted,
    unknown_tokens: {
      tokens: position.tokens.unknownTokens,
      share: unknownShare(position.tokens),
      documents: position.tokens.documents,
      worst: position.tokens.worst.map(({ docId, share }) => ({ doc_id: docId, share })),
    },
  };
  return {
    index: target.name,
    ...(target.id === undefined
      ? { dry_run: true, documents: position.done, failed: position.failed }
      : sent),
    fields: preview,
    repeated_doc_ids: reader.repeated,
    cut_documents: reader.cut.documents,
    parts: reader.cut.parts,
    identifiers: reader.identifiers.words,
    identifiers_left_out: reader.identifiers.leftOut,
    expiring_documents: reader.expiring.documents,
    expired_documents: reader.expiring.over,
    fields_as_metadata: Object.fromEntries(reader.sentAsMetadata),
    fields_left_out: Object.fromEntries(reader.leftOut),
    arrays_left_out: Object.fromEntries(reader.arraysLeftOut),
    files_skipped: Object.fromEntries(source.skipped ?? []),
    remarks: [...reader.remarks].map(([remark, found]) => ({ remark, ...found })),
    column_types: Object.fromEntries(source.types.chosen),
    column_exceptions: Object.fromEntries(source.types.exceptions),
    column_no_values: Object.fromEntries(source.types.noValues),
    column_mixed: Object.fromEntries(source.types.mixed),
    seconds: Number(seconds.toFixed(3)),
    failures: problems.map((item) => ({
      file: item.file,
      line: item.line,
      doc_id: item.docId ?? null,
      error: item.error,
    })),
  };
}

function textOf(
  { target, position, start, source, reader, deleted }: ImportReport,
  seconds: number,
  stopped: string | undefined,
): string {
  const { repeated, sentAsMetadata, leftOut, arraysLeftOut } = reader;
  const done: readonly (readonly [string, string])[] =
    target.id === undefined
      ? [
          ['index', target.name],
          ['documents', `${position.done} (a dry run: nothing was sent)`],
        ]
      : [
          ['index', `${target.name} (${target.id})${target.created === true ? ', created' : ''}`],
          ['done', String(position.done)],
          ...(deleted === 0
            ? []
            : [['deleted', `${deleted} documents of earlier imports, which were cut otherwise`] as const]),
        ];
  return fields([
    ...done,
    ['failed', String(position.failed)],
    ...(start.rows === 0 ? [] : [['resumed', `after row ${start.rows}`] as const]),
    ...(stopped === undefined ? [] : [['stopped', stopped] as const]),
    ...(repeated === 0
      ? []
      : [
          [
            'repeated',
            `${repeated} documents have an id that came before (${firstOf(reader)}): the last one stays`,
          ] as const,
        ]),
    ...(reader.cut.documents === 0
      ? []
      : [['cut', `${reader.cut.documents} documents into ${reader.cut.parts} parts`] as const]),
    ...identifiersOf(reader).map((text) => ['identifiers', text] as const),
    ...expiryOf(reader).map((text) => ['expiry', text] as const),
    ...(sentAsMetadata.size === 0
      ? []
      : [['metadata', `also the fields ${counted(sentAsMetadata)}`] as const]),
    ...(source.types.chosen.size === 0 ? [] : [['columns', columnTypes(source.types)] as const]),
    ...(leftOut.size === 0 ? [] : [['left out', `the fields ${counted(leftOut)}`] as const]),
    ...(arraysLeftOut.size === 0 ? [] : [['arrays', arraysText(arraysLeftOut)] as const]),
    ...remarksOf(reader).map((text) => ['remark', text] as const),
    ...(source.skipped === undefined || source.skipped.size === 0
      ? []
      : [['skipped', `files that are not read: ${countsText(source.skipped)}`] as const]),
    ...(position.tokens.documents === 0 ? [] : [['unknown', unknownTokens(position.tokens)] as const]),
    ['time', `${seconds.toFixed(1)} s`],
  ]);
}

function identifiersOf({ identifiers: { words, documents, leftOut } }: DocumentReader): readonly string[] {
  const kept = words === 0 ? [] : [`${words} in ${documents} documents`];
  const others = leftOut === 0 ? [] : [`${leftOut} left out, because metadata have at most 16 KiB`];
  return words + leftOut === 0 ? [] : [[...kept, ...others].join('; ')];
}

function expiryOf({ expiring: { documents, over } }: DocumentReader): readonly string[] {
  if (documents === 0) return [];
  return [
    `${documents} documents expire at the time of their field expires_at${over === 0 ? '' : `; ${over} of these times are over, so no search finds the documents`}`,
  ];
}

function remarksOf({ remarks }: DocumentReader): readonly string[] {
  return [...remarks].map(
    ([remark, { rows, places }]) => `${rows} rows (${placesOf({ count: rows, places })}) ${remark}`,
  );
}

/** The first places. */
function placesOf({ count, places }: Pick<Mixed, 'count' | 'places'>): string {
  const named = places.map(({ file, line }) => `${file}:${line}`);
  return [...named, ...(count > named.length ? ['...'] : [])].join(', ');
}

function firstOf({ repeated, repeatedDocIds }: DocumentReader): string {
  return [...repeatedDocIds, ...(repeated > repeatedDocIds.size ? ['...'] : [])].join(', ');
}

const fieldsShownMax = 20;

function counted(names: ReadonlyMap<string, number>): string {
  return listed([...names].map(([name, count]) => `${name} (${count})`));
}

function arraysText(arrays: ReadonlyMap<string, number>): string {
  return `left out, as vectors or because they hold more than ${numbersMax} numbers: ${counted(arrays)}; --metadata-fields keeps the fields that it names`;
}

/** All unknown text has the same token vectors, so a search cannot tell such texts apart. */
function unknownTokens(tokens: TokenTally): string {
  const { documents, worst } = tokens;
  const named = worst.map(({ docId, share }) => `${docId} ${percent(share)}`);
  return `${percent(unknownShare(tokens))} of the tokens stand for text that the model does not know, in ${documents} documents (${[...named, ...(documents > worst.length ? ['...'] : [])].join(', ')})`;
}

function percent(share: number): string {
  return share < 0.001 ? 'less than 0.1 %' : `${(share * 100).toFixed(1)} %`;
}

function columnTypes({ chosen, exceptions, noValues, mixed }: ColumnTypes): string {
  return listed(
    [...chosen].map(([name, type]) => {
      const others = exceptions.get(name);
      const none = noValues.get(name);
      const kept = mixed.get(name);
      const notes = [
        ...(others === undefined ? [] : [`${others} other values stayed strings`]),
        ...(none === undefined ? [] : [`${none} cells say that there is no value`]),
        ...(kept === undefined
          ? []
          : [`because of ${kept.count} cells that are no ${kept.type}: ${placesOf(kept)}`]),
      ];
      return `${name} (${[type, ...notes].join('; ')})`;
    }),
  );
}

function listed(items: readonly string[]): string {
  const more = items.length - fieldsShownMax;
  return [...items.slice(0, fieldsShownMax), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

function describe(problem: DocumentProblem): string {
  return oneLine(problem.docId === undefined ? problem.error : `document ${problem.docId}: ${problem.error}`);
}
