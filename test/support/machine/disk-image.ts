/**
 * Makes the contents that a disk may have after a power cut, from a log of the calls that changed it.
 *
 * Files: everything is there that was written before a sync which ended before the cut. Of later writes each sector of 512 bytes
 * is there or not, whatever their order. So writes may be torn, lost or reordered. Changes of the length take effect in the
 * order of the calls, and any number of the last ones may be lost. Bytes that no surviving write has reached are zeros.
 *
 * Directories: changes of names take effect in the order of the calls, and any number of those since the last sync of the
 * directory may be lost. Directories are independent of each other, and the sync of a file does not include its name. A
 * journalling file system keeps more order than that.
 *
 * A failed sync: the kernel forgets that the pages are dirty. So what was not synced by then does not become durable by a later
 * sync, unless it is written again.
 *
 * Not modelled: sectors with neither the old bytes nor the new ones, and disks that lose data that they have synced.
 */
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { assertInvariant } from '../../../src/errors.ts';
import { pathsOf, type DiskLogEntry } from './disk-log.ts';

const sectorBytes = 512;
const pageBytes = 4096;

/** Chooses which changes survive a cut that were not synced. */
export interface Survival {
  /** How many of `count` changes survive, counted from the first: changes of names in a directory, or of a file's length. */
  readonly changes: (count: number) => number;
  /** Whether the next sector of a write survives. */
  readonly sector: () => boolean;
}

/** The two extremes: no change survives that was not synced, and every change survives. */
export const nothingSurvives: Survival = { changes: () => 0, sector: () => false };
export const everythingSurvives: Survival = { changes: (count) => count, sector: () => true };

/** Chooses for each file whether all, most, half, few or none of its sectors survive. */
export function randomSurvival(random: () => number): Survival {
  const shares = [0, 0.1, 0.5, 0.9, 1];
  let share = 0;
  return {
    changes(count) {
      share = shares[Math.floor(random() * shares.length)] ?? 0;
      const choice = random();
      if (choice < 0.25) return 0;
      return choice < 0.5 ? count : Math.floor(random() * (count + 1));
    },
    sector: () => random() < share,
  };
}

interface Write {
  readonly offset: number;
  readonly data: Buffer;
}

type FileChange =
  | (Write & {
      readonly place: number;
      readonly kind: 'write';
      /** A sync of it has failed. */ readonly lost?: boolean;
    })
  | { readonly place: number; readonly kind: 'resize'; readonly length: number };

interface FileNode {
  readonly kind: 'file';
  durable: Buffer;
  unsynced: FileChange[];
}

interface DirectoryNode {
  readonly kind: 'directory';
  durable: Map<string, Node>;
  unsynced: { readonly place: number; readonly change: (names: Map<string, Node>) => void }[];
  /** The names as the process sees them. */
  readonly names: Map<string, Node>;
}

type Node = FileNode | DirectoryNode;

export class DiskImage {
  readonly #root: DirectoryNode;
  readonly #inodes = new Map<number, Node>();
  readonly #syncs = new Map<number, number>();
  #place = 0;

  /** The disk begins with the present content of the directory. All of it is durable. */
  constructor(directory: string) {
    const root = this.#load(directory);
    assertInvariant(root.kind === 'directory', 'a disk is a directory');
    this.#root = root;
  }

  /** Applies the next entry of the log. */
  apply(entry: DiskLogEntry): void {
    this.#place += 1;
    switch (entry.kind) {
      case 'create':
        return this.#add(entry, { kind: 'file', durable: Buffer.alloc(0), unsynced: [] });
      case 'mkdir':
        return this.#add(entry, { kind: 'directory', durable: new Map(), unsynced: [], names: new Map() });
      case 'remove':
      case 'rename':
      case 'link':
        return this.#changeNames(entry);
      case 'write':
        return this.#change(entry, { kind: 'write', offset: entry.number, data: entry.data });
      case 'resize':
        return this.#change(entry, { kind: 'resize', length: entry.number });
      case 'syncBegin':
        this.#syncs.set(entry.number, this.#place);
        return;
      case 'syncEnd':
        return this.#sync(this.#inode(entry), this.#syncs.get(entry.number) ?? 0);
      case 'syncFailed':
        return this.#failSync(this.#inode(entry));
      default:
    }
  }

  /** Writes the content of the disk if its power were cut now. */
  write(directory: string, survival: Survival): void {
    writeNode(directory, this.#root, survival);
  }

  /** The inode that has the name now. */
  inodeOf(place: string): number | undefined {
    const node = this.#directory(place).names.get(path.basename(place));
    return [...this.#inodes].find(([, other]) => other === node)?.[0];
  }

  #load(place: string): Node {
    const found = statSync(place);
    const node: Node = found.isDirectory()
      ? { kind: 'directory', durable: new Map(), unsynced: [], names: new Map() }
      : { kind: 'file', durable: readFileSync(place), unsynced: [] };
    this.#inodes.set(found.ino, node);
    if (node.kind === 'directory') {
      for (const name of readdirSync(place)) {
        const child = this.#load(path.join(place, name));
        node.durable.set(name, child);
        node.names.set(name, child);
      }
    }
    return node;
  }

  #inode({ inode }: DiskLogEntry): Node {
    const node = this.#inodes.get(inode);
    assertInvariant(node !== undefined, `inode ${inode} was made or found`);
    return node;
  }

  #add(entry: DiskLogEntry, node: Node): void {
    const [place = ''] = pathsOf(entry);
    this.#inodes.set(entry.inode, node);
    this.#rename(place, (names, name) => names.set(name, node));
  }

  #changeNames(entry: DiskLogEntry): void {
    const [from = '', to = ''] = pathsOf(entry);
    if (entry.kind === 'remove') return this.#rename(from, (names, name) => names.delete(name));
    const node = this.#directory(from).names.get(path.basename(from));
    assertInvariant(node !== undefined, `${from} is there`);
    assertInvariant(path.dirname(from) === path.dirname(to), 'names move within their directory');
    this.#rename(to, (names, name) => {
      names.set(name, node);
      if (entry.kind === 'rename') names.delete(path.basename(from));
    });
  }

  #rename(place: string, change: (names: Map<string, Node>, name: string) => void): void {
    const directory = this.#directory(place);
    const apply = (names: Map<string, Node>): void => change(names, path.basename(place));
    apply(directory.names);
    directory.unsynced.push({ place: this.#place, change: apply });
  }

  #directory(place: string): DirectoryNode {
    let node: Node | undefined = this.#root;
    for (const part of path.dirname(place).split('/')) {
      if (part !== '.' && node?.kind === 'directory') node = node.names.get(part);
    }
    assertInvariant(node?.kind === 'directory', `${place} has a directory`);
    return node;
  }

  #change(entry: DiskLogEntry, change: Unplaced<FileChange>): void {
    const node = this.#inode(entry);
    assertInvariant(node.kind === 'file', 'files are written');
    node.unsynced.push({ ...change, place: this.#place });
  }

  #sync(node: Node, begun: number): void {
    if (node.kind === 'directory') {
      for (const { place, change } of node.unsynced) if (place < begun) change(node.durable);
      node.unsynced = node.unsynced.filter(({ place }) => place >= begun);
      return;
    }
    const dirty = new Set(
      node.unsynced
        .flatMap((change) =>
          change.kind === 'write' && !change.lost && change.place < begun ? piecesOf(change, pageBytes) : [],
        )
        .map(pageOf),
    );
    const isSynced = (change: FileChange): boolean =>
      change.kind === 'write' && change.lost === true ? dirty.has(pageOf(change)) : change.place < begun;
    node.durable = fileAfter(node.durable, node.unsynced.filter(isSynced), everythingSurvives);
    node.unsynced = node.unsynced.filter((change) => !isSynced(change));
  }

  /** Written pages are lost. Names and lengths are in the journal of the file system, and a later sync writes them. */
  #failSync(node: Node): void {
    if (node.kind === 'directory') return;
    let { length } = node.durable;
    node.unsynced = node.unsynced.flatMap((change): FileChange[] => {
      const { place } = change;
      if (change.kind === 'resize') {
        length = change.length;
        return [change];
      }
      length = Math.max(length, change.offset + change.data.length);
      const pieces = piecesOf(change, pageBytes);
      return [
        { place, kind: 'resize', length },
        ...pieces.map((piece) => ({ ...piece, place, kind: 'write' as const, lost: true })),
      ];
    });
  }
}

type Unplaced<Change> = Change extends unknown ? Omit<Change, 'place'> : never;

function writeNode(place: string, node: Node, survival: Survival): void {
  if (node.kind === 'file') {
    writeFileSync(place, fileAfter(node.durable, node.unsynced, survival), { mode: 0o600 });
    return;
  }
  mkdirSync(place, { mode: 0o700 });
  const names = new Map(node.durable);
  for (const { change } of node.unsynced.slice(0, survival.changes(node.unsynced.length))) change(names);
  for (const [name, child] of names) writeNode(path.join(place, name), child, survival);
}

/** The bytes of a file after the changes that survive. */
function fileAfter(durable: Buffer, changes: readonly FileChange[], survival: Survival): Buffer {
  if (changes.length === 0) return durable;
  const lengthsKept = survival.changes(changes.length);
  let length = durable.length;
  let room = length;
  for (const [number, change] of changes.entries()) {
    const end = change.kind === 'write' ? change.offset + change.data.length : change.length;
    room = Math.max(room, end);
    if (number < lengthsKept) length = change.kind === 'write' ? Math.max(length, end) : end;
  }
  const bytes = Buffer.alloc(room);
  durable.copy(bytes);
  for (const [number, change] of changes.entries()) {
    if (change.kind === 'resize') {
      if (number < lengthsKept) bytes.fill(0, change.length);
      continue;
    }
    for (const { offset, data } of piecesOf(change, sectorBytes))
      if (survival.sector()) data.copy(bytes, offset);
  }
  return bytes.subarray(0, length);
}

/** Cuts a write at every multiple of `size`. */
function piecesOf({ offset, data }: Write, size: number): readonly Write[] {
  const pieces: Write[] = [];
  for (let from = 0; from < data.length;) {
    const to = Math.min(data.length, from + size - ((offset + from) % size));
    pieces.push({ offset: offset + from, data: data.subarray(from, to) });
    from = to;
  }
  return pieces;
}

function pageOf({ offset }: Pick<Write, 'offset'>): number {
  return Math.floor(offset / pageBytes);
}
