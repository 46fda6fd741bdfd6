/**
 * The pieces of a vocabulary by their text, as a double-array trie (Aoe, "An Efficient Digital Search Algorithm by Using a
 * Double-Array Structure", 1989). The child of node `s` by character `c` is `base[s] + c`, if the `parent` of that node is `s`.
 * Finding the longest piece takes one step per character in one block of memory, and makes no strings. A map of strings would have
 * to be asked for every length, from the longest on.
 */
import { assertInvariant } from '../../../errors.ts';

/** The piece of a node that has none. */
const none = -1;
/** The fields of a node, and their number. */
const base = 0;
const parent = 1;
const piece = 2;
const stride = 4;
const root = 1;
const utf16Units = 1 << 16;
/** Where more than this share of nodes is in use, no room for several children is sought any more. */
const crowded = 0.9;

export class PieceTrie {
  /** The id of the piece that `longest` found last. */
  found = none;
  /** UTF-16 unit -> its number from 1 on, so that those in use lie close together; 0 = in no piece. */
  readonly #numbers = new Uint16Array(utf16Units);
  #characters = 0;
  /** [base, parent, piece, unused] of each node; parent 0 = free. */
  #nodes = new Int32Array(stride * 1024);
  /** No node below this one is free. */
  #firstFree = 0;
  /** Few nodes below this one are free. */
  #roomFrom = 0;

  /** The last of equal texts counts. Empty texts are ignored. */
  constructor(pieces: Iterable<readonly [string, number]>) {
    const ids = new Map(pieces);
    ids.delete('');
    const texts = [...ids.keys()].toSorted();
    for (const text of texts) this.#number(text);
    // Every offset is 1 or more.
    this.#firstFree = this.#roomFrom = root + this.#characters + 1;
    this.#reserve(root);
    this.#nodes.set([0, root, none], root * stride);
    this.#build(texts, ids);
  }

  /** Finds the longest piece that `text[from, to)` begins with. Sets `found` and returns its end; `from` if there is none. */
  longest(text: string, from: number, to: number): number {
    const nodes = this.#nodes;
    const numbers = this.#numbers;
    let node = root;
    let end = from;
    for (let at = from; at < to; at++) {
      const number = numbers[text.charCodeAt(at)]!;
      const next = nodes[node * stride + base]! + number;
      if (number === 0 || nodes[next * stride + parent] !== node) break;
      node = next;
      const id = nodes[node * stride + piece]!;
      if (id === none) continue;
      this.found = id;
      end = at + 1;
    }
    return end;
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
      if (texts[first]?.length === depth) this.#nodes[node * stride + piece] = ids.get(texts[first++]!)!;
      const children: { number: number; first: number; last: number }[] = [];
      for (let at = first; at < last; at++) {
        const number = this.#numbers[texts[at]!.charCodeAt(depth)]!;
        const child = children.at(-1);
        if (child?.number === number) child.last = at + 1;
        else children.push({ number, first: at, last: at + 1 });
      }
      if (children.length === 0) continue;
      const offset = this.#place(children.map(({ number }) => number));
      this.#nodes[node * stride + base] = offset;
      for (const child of children) this.#nodes.set([0, node, none], (offset + child.number) * stride);
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
    assertInvariant(node < 2 ** 28, 'a vocabulary fits');
    if (node * stride < this.#nodes.length) return;
    const larger = new Int32Array(Math.max(2 * this.#nodes.length, (node + 1) * stride));
    larger.set(this.#nodes);
    this.#nodes = larger;
  }
}
