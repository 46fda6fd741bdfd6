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
export const none = -1;
export const root = 1;
/** The fields of a node, and their number. */
const link = 0;
const parent = 1;
const stride = 2;
/** In `parent`: the node has a piece. */
const pieceFlag = 1 << 30;
const nodesMax = 1 << 28;
const utf16Units = 1 << 16;
/** Where more than this share of nodes is in use, no room for several children is sought any more. */
const crowded = 0.9;

export class PieceTrie {
  /** The id of the piece that `longest` found last. */
  found = none;
  /** UTF-16 unit -> its number from 1 on, so that those in use lie close together; 0 = in no piece. */
  readonly #numbers = new Uint16Array(utf16Units);
  #characters = 0;
  /** [link, parent] of each node; parent 0 = free. `link`: where its children lie, or -1 minus its piece if it has no children. */
  #nodes = new Int32Array(stride * 1024);
  /** No node below this one is free. */
  #firstFree = 0;
  /** Few nodes below this one are free. */
  #roomFrom = 0;
  #nodesUsed = 0;

  /** The last of equal texts counts. Empty texts are ignored. */
  constructor(pieces: Iterable<readonly [string, number]>) {
    const ids = new Map(pieces);
    ids.delete('');
    const texts = [...ids.keys()].toSorted();
    for (const text of texts) this.#number(text);
    // Every offset is 1 or more.
    this.#firstFree = this.#roomFrom = root + this.#characters + 1;
    this.#reserve(root);
    this.#nodes.set([none, root], root * stride);
    this.#build(texts, ids);
    this.#nodes = this.#nodes.slice(0, stride * (this.#nodesUsed + 1));
  }

  /** Finds the longest piece that `text[from, to)` begins with. Sets `found` and returns its end; `from` if there is none. */
  longest(text: string, from: number, to: number): number {
    let node = root;
    let end = from;
    for (let at = from; at < to; at++) {
      node = this.child(node, text.charCodeAt(at));
      if (node === none) break;
      const id = this.pieceOf(node);
      if (id === none) continue;
      this.found = id;
      end = at + 1;
    }
    return end;
  }

  /** The node that the UTF-16 unit leads to; `none` if no piece goes on like that. */
  child(node: number, unit: number): number {
    const nodes = this.#nodes;
    const number = this.#numbers[unit]!;
    const children = nodes[node * stride + link]!;
    if (number === 0 || children < 0) return none;
    const next = children + number;
    return (nodes[next * stride + parent]! & ~pieceFlag) === node ? next : none;
  }

  /** The id of the piece that ends at the node, or `none`. */
  pieceOf(node: number): number {
    const nodes = this.#nodes;
    if ((nodes[node * stride + parent]! & pieceFlag) === 0) return none;
    const children = nodes[node * stride + link]!;
    return children < 0 ? none - children : nodes[children * stride + link]!;
  }

  #number(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (this.#numbers[unit] === 0) this.#numbers[unit] = ++this.#characters;
    }
  }

  /** Places the sorted texts node by node. `pending` holds nodes with the range of texts that lead through them. */
  #build(texts: readonly string[], ids: ReadonlyMap<string, number>): void {
    const pending = [{ node: root, first: 0, last: texts.length, depth: 0 }];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const { node, last, depth } = next;
      let { first } = next;
      const piece = texts[first]?.length === depth ? ids.get(texts[first++]!)! : none;
      const children: { number: number; first: number; last: number }[] = [];
      for (let at = first; at < last; at++) {
        const number = this.#numbers[texts[at]!.charCodeAt(depth)]!;
        const child = children.at(-1);
        if (child?.number === number) child.last = at + 1;
        else children.push({ number, first: at, last: at + 1 });
      }
      if (piece !== none) this.#nodes[node * stride + parent]! |= pieceFlag;
      if (children.length === 0) {
        this.#nodes[node * stride + link] = none - piece;
        continue;
      }
      const numbers = children.map(({ number }) => number);
      const offset = this.#place(piece === none ? numbers : [0, ...numbers]);
      this.#nodes[node * stride + link] = offset;
      if (piece !== none) this.#nodes.set([piece, node], offset * stride);
      for (const child of children) this.#nodes.set([none, node], (offset + child.number) * stride);
      for (const { number, first: from, last: to } of children) {
        pending.push({ node: offset + number, first: from, last: to, depth: depth + 1 });
      }
    }
  }

  /** An offset at which the nodes of all these children are free. */
  #place(numbers: readonly number[]): number {
    const [anchor = 0] = numbers;
    while (!this.#isFree(this.#firstFree)) this.#firstFree++;
    // A single child fits between the nodes of others.
    const from = numbers.length === 1 ? this.#firstFree : this.#roomFrom;
    let taken = 0;
    for (let node = from; ; node++) {
      const offset = node - anchor;
      if (!this.#isFree(node)) taken++;
      else if (numbers.every((number) => this.#isFree(offset + number))) {
        if (numbers.length > 1 && taken >= crowded * (node - from)) this.#roomFrom = node;
        this.#reserve(offset + this.#characters);
        return offset;
      }
    }
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
