/**
 * The pieces of a vocabulary by their text, as a double-array trie (Aoe, "An Efficient Digital Search Algorithm by Using a
 * Double-Array Structure", 1989). The child of node `s` by character `c` is `link[s] + c`, if the `parent` of that node is `s`.
 * A step takes one look-up in one block of memory, and makes no strings. A map of strings would have to be asked for every length.
 *
 * A node has two numbers, because large vocabularies have a million nodes. The piece of a node without children stands in its
 * `link`. The piece of a node with children stands in a child of its own, number 0, which no character has.
 */
import { assertInvariant } from '../../../errors.ts';

/** The piece of a node that has none, and the child that a node does not have. */
const none = -1;
const root = 1;
/** The fields of a node, and their number. */
const link = 0;
const parent = 1;
const stride = 2;
/** In `parent`: the node has a piece. */
const pieceFlag = 1 << 30;
const nodesMax = 1 << 28;
const utf16Units = 1 << 16;
/** If so many nodes are passed before there is room for several children, none is sought there any more. */
const passedMax = 50;

/** The arrays of a trie. They lie in shared memory, so that two threads need them once. */
export interface PieceTables {
  readonly numbers: Uint16Array;
  readonly nodes: Int32Array;
  /** The most units of a piece. */
  readonly unitsMax: number;
}

export class PieceTrie {
  /** The id of the piece that `longest` found last. */
  found = none;
  /** The pieces that `all` found last, and where each ends. */
  readonly ids: Int32Array;
  readonly ends: Int32Array;
  /** UTF-16 unit -> its number from 1 on, so that those in use lie close together; 0 = in no piece. */
  readonly #numbers: Uint16Array;
  #characters = 0;
  /** [link, parent] of each node; parent 0 = free. `link`: where its children lie, or -1 minus its piece if it has no children. */
  #nodes: Int32Array = new Int32Array(stride * 1024);
  /** No node below this one is free. */
  #firstFree = 0;
  /** Few nodes below this one are free. */
  #roomFrom = 0;
  #nodesUsed = 0;

  /** The last of equal texts counts. Empty texts are ignored. Pieces in frequent use come first: then their nodes lie together. */
  constructor(pieces: Iterable<readonly [string, number]> | PieceTables) {
    if ('nodes' in pieces) {
      this.#numbers = pieces.numbers;
      this.#nodes = pieces.nodes;
      this.ids = new Int32Array(pieces.unitsMax);
      this.ends = new Int32Array(pieces.unitsMax);
      return;
    }
    this.#numbers = new Uint16Array(new SharedArrayBuffer(2 * utf16Units));
    const tree = new PieceTree();
    let unitsMax = 0;
    for (const [text, id] of pieces) {
      for (let at = 0; at < text.length; at++) {
        const unit = text.charCodeAt(at);
        if (this.#numbers[unit] === 0) this.#numbers[unit] = ++this.#characters;
      }
      if (text !== '') tree.add(text, id);
      unitsMax = Math.max(unitsMax, text.length);
    }
    this.ids = new Int32Array(unitsMax);
    this.ends = new Int32Array(unitsMax);
    // Every offset is 1 or more.
    this.#firstFree = this.#roomFrom = root + this.#characters + 1;
    this.#reserve(root);
    this.#nodes.set([none, root], root * stride);
    this.#build(tree);
    const used = this.#nodes.subarray(0, stride * (this.#nodesUsed + 1));
    this.#nodes = new Int32Array(new SharedArrayBuffer(used.byteLength));
    this.#nodes.set(used);
  }

  get tables(): PieceTables {
    return { numbers: this.#numbers, nodes: this.#nodes, unitsMax: this.ids.length };
  }

  /** Finds the longest piece that `text[from, to)` begins with. Sets `found` and returns its end; `from` if there is none. */
  longest(text: string, from: number, to: number): number {
    const count = this.all(text, from, to);
    if (count === 0) return from;
    this.found = this.ids[count - 1]!;
    return this.ends[count - 1]!;
  }

  /** Finds all pieces that `text[from, to)` begins with, from short to long. Sets `ids` and `ends`, and returns their number. */
  all(text: string, from: number, to: number): number {
    const nodes = this.#nodes;
    const numbers = this.#numbers;
    let node = root;
    let children = nodes[root * stride + link]!;
    let count = 0;
    for (let at = from; at < to && children >= 0; at++) {
      const number = numbers[text.charCodeAt(at)]!;
      const next = children + number;
      const above = nodes[next * stride + parent]!;
      if (number === 0 || (above & ~pieceFlag) !== node) break;
      node = next;
      children = nodes[node * stride + link]!;
      if (above === (above & ~pieceFlag)) continue;
      // A node without children holds its piece in place of them.
      this.ids[count] = children < 0 ? none - children : nodes[children * stride + link]!;
      this.ends[count++] = at + 1;
    }
    return count;
  }

  /** Places the children of each node of the tree, in the order in which the nodes came. */
  #build(tree: PieceTree): void {
    /** Node of the tree -> node here. */
    const placed = new Int32Array(tree.nodes);
    placed[0] = root;
    const numbers: number[] = [];
    for (let each = 0; each < tree.nodes; each++) {
      const node = placed[each]!;
      const piece = tree.pieces[each]!;
      if (piece !== none) this.#nodes[node * stride + parent]! |= pieceFlag;
      const first = tree.firstChildren[each]!;
      if (first === none) {
        this.#nodes[node * stride + link] = none - piece;
        continue;
      }
      numbers.length = 0;
      if (piece !== none) numbers.push(0);
      for (let child = first; child !== none; child = tree.siblings[child]!) {
        numbers.push(this.#numbers[tree.units[child]!]!);
      }
      numbers.sort((some, other) => some - other);
      const offset = this.#place(numbers);
      this.#nodes[node * stride + link] = offset;
      if (piece !== none) this.#nodes.set([piece, node], offset * stride);
      for (let child = first; child !== none; child = tree.siblings[child]!) {
        placed[child] = offset + this.#numbers[tree.units[child]!]!;
        this.#nodes.set([none, node], placed[child]! * stride);
      }
    }
  }

  /** An offset at which the nodes of all these children are free. */
  #place(numbers: readonly number[]): number {
    const [anchor = 0] = numbers;
    while (!this.#isFree(this.#firstFree)) this.#firstFree++;
    // A single child fits between the nodes of others.
    const from = numbers.length === 1 ? this.#firstFree : this.#roomFrom;
    let node = from;
    while (!numbers.every((number) => this.#isFree(node - anchor + number))) node++;
    if (numbers.length > 1 && node - from > passedMax) this.#roomFrom = node;
    this.#reserve(node - anchor + this.#characters);
    return node - anchor;
  }

  #isFree(node: number): boolean {
    return node * stride >= this.#nodes.length || this.#nodes[node * stride + parent] === 0;
  }

  /** Grows the array for the node. So a look-up at any offset in use stays within it. */
  #reserve(node: number): void {
    assertInvariant(node < nodesMax, 'a vocabulary fits');
    this.#nodesUsed = Math.max(this.#nodesUsed, node);
    if (node * stride < this.#nodes.length) return;
    const larger = new Int32Array(Math.max(2 * this.#nodes.length, (node + 1) * stride));
    larger.set(this.#nodes);
    this.#nodes = larger;
  }
}

/** A trie that grows: nodes by number, in the order in which they come. Node 0 is the root. */
class PieceTree {
  nodes = 1;
  pieces = new Int32Array(1024).fill(none);
  units = new Uint16Array(1024);
  firstChildren = new Int32Array(1024).fill(none);
  siblings = new Int32Array(1024).fill(none);
  #parents = new Int32Array(1024);
  /** Children by parent and unit: a hash table with open addressing; 0 = free. It is at least twice as long as there are nodes. */
  #table = new Int32Array(4096);

  add(text: string, id: number): void {
    let node = 0;
    for (let at = 0; at < text.length; at++) node = this.#child(node, text.charCodeAt(at));
    this.pieces[node] = id;
  }

  #child(node: number, unit: number): number {
    let slot = this.#slot(node, unit);
    if (this.#table[slot] !== 0) return this.#table[slot]!;
    if (this.nodes === this.units.length) {
      this.#grow();
      slot = this.#slot(node, unit);
    }
    const child = this.nodes++;
    this.units[child] = unit;
    this.#parents[child] = node;
    this.siblings[child] = this.firstChildren[node]!;
    this.firstChildren[node] = child;
    this.#table[slot] = child;
    return child;
  }

  /** The place of the child in the table, or the free one that it would take. */
  #slot(node: number, unit: number): number {
    const last = this.#table.length - 1;
    const hash = Math.imul(node, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b);
    for (let slot = (hash ^ (hash >>> 15)) & last; ; slot = (slot + 1) & last) {
      const child = this.#table[slot]!;
      if (child === 0 || (this.#parents[child] === node && this.units[child] === unit)) return slot;
    }
  }

  #grow(): void {
    const size = 2 * this.units.length;
    const larger = (numbers: Int32Array): Int32Array<ArrayBuffer> => {
      const grown = new Int32Array(size).fill(none);
      grown.set(numbers);
      return grown;
    };
    this.pieces = larger(this.pieces);
    this.firstChildren = larger(this.firstChildren);
    this.siblings = larger(this.siblings);
    this.#parents = larger(this.#parents);
    const units = new Uint16Array(size);
    units.set(this.units);
    this.units = units;
    this.#table = new Int32Array(4 * size);
    for (let child = 1; child < this.nodes; child++) {
      this.#table[this.#slot(this.#parents[child]!, this.units[child]!)] = child;
    }
  }
}
