/**
 * The load of the batteries on disks that lose power or fail: operations whose documents follow from their numbers, and
 * notes of what was begun and what was acknowledged, of which a later process tells what must be there.
 */
import { writeSync } from 'node:fs';
import type { IndexSettings } from '../../../src/index/index-settings.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { dim, month, type Stage, type TestDocument } from '../../support/stages/index-stage.ts';

/** Segments are full after a few documents, merged all the time and have codes. */
export const loadSettings: Partial<IndexSettings> = {
  segmentTokenVectorsMax: 40,
  sealedSegmentsMax: 2,
  codesTokenVectorsMin: 30,
  wasteAgeMsMax: 0,
};

export interface Version {
  readonly docId: string;
  /** Decides the content. */
  readonly uid: number;
}

export interface Operation {
  readonly number: number;
  readonly kind: 'upsert' | 'delete' | 'search';
  readonly versions: readonly Version[];
}

/** The ids of an index and of its tenant, noted once both are acknowledged. */
export type StageIds = Pick<Stage, 'tenantId' | 'indexId'>;

export type Note =
  | { readonly what: 'opened'; readonly ids: StageIds }
  | { readonly what: 'begun'; readonly operation: Operation }
  /** `changed`: a delete found its document. */
  | { readonly what: 'acknowledged'; readonly number: number; readonly changed: boolean }
  /** They did not happen, and a later commit has taken their place. */
  | { readonly what: 'refused'; readonly numbers: readonly number[] }
  /** Another tenant and its index, that come and go. */
  | { readonly what: 'guest'; readonly ids: StageIds; readonly state: 'there' | 'leaving' | 'gone' };

export type TakeNote = (note: Note) => void;

/** One write a note: each is an entry of the disk's log. */
export function notesOn(descriptor: number): TakeNote {
  return (note) => void writeSync(descriptor, JSON.stringify(note));
}

/** Tokens of one search in the ledger. */
export const searchTokens = 3n;

export function documentOf({ docId, uid }: Version): TestDocument {
  const random = seededRandom(uid);
  const upTo = (count: number): number => 1 + Math.floor(random() * count);
  const row = (): number[] => Array.from({ length: dim }, () => Math.floor(random() * 255) - 127);
  return {
    docId,
    metadata: { uid },
    chunks: Array.from({ length: upTo(3) }, () => Array.from({ length: upTo(3) }, row)),
  };
}

export function tokenVectorsOf(version: Version): number {
  return documentOf(version).chunks.flat().length;
}

export interface LoadOptions {
  readonly seed: number;
  /** As many as all writers do together. */
  readonly operations: number;
  readonly note: TakeNote;
}

const writers = 3;
const documentsPerWriter = 6;
/** Uids do not repeat from run to run. */
const uidsPerRun = 1_000_000;

/** Upserts, deletes, abandoned upserts and usage by a few writers at once, each with documents of its own. */
export async function writeLoad(stage: Stage, { seed, operations, note }: LoadOptions): Promise<void> {
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  let begun = 0;
  let uids = seed * uidsPerRun;
  const run = async (
    kind: Operation['kind'],
    versions: readonly Version[],
    work: () => Promise<boolean>,
  ): Promise<void> => {
    const operation = { number: uids++, kind, versions };
    note({ what: 'begun', operation });
    note({ what: 'acknowledged', number: operation.number, changed: await work() });
  };
  const writer = async (name: string): Promise<void> => {
    const choose = (count: number): Version[] => {
      const places = Array.from({ length: count }, () => below(documentsPerWriter));
      return [...new Set(places)].map((place) => ({ docId: `${name}-${place}`, uid: uids++ }));
    };
    while (begun++ < operations) {
      const choice = random();
      if (choice < 0.55) {
        const versions = choose(4);
        await run('upsert', versions, async () => {
          await stage.upsert(versions.map(documentOf));
          return true;
        });
      } else if (choice < 0.7) {
        const [version] = choose(1);
        if (version !== undefined) await run('delete', [version], () => stage.remove(version.docId));
      } else if (choice < 0.75) {
        await stage.abandon(choose(2).map(documentOf));
      } else {
        await run('search', [], async () => {
          // It writes columns of segments with codes.
          await stage.matching('{"uid":{"gte":0}}');
          await recordSearch(stage);
          return true;
        });
      }
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, place) => writer(`w${place}`)));
}

export async function recordSearch({ catalog, tenantId }: Stage): Promise<void> {
  await catalog.recordUsage({ tenantId, month, requests: 1, searches: 1, inputTokens: searchTokens });
}
