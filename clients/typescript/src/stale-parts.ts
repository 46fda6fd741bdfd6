/**
 * Finds the documents that an import has left behind: parts of an earlier import that are no longer there, and documents
 * that were whole and are cut now. A document is left behind only if all parts of the present import are stored.
 */
import { sourceOf } from './cut.ts';
import type { StoredDocument } from './types.ts';

export class StaleParts {
  /** Id of a document of the input -> number of its parts; 1 = whole. */
  readonly #parts = new Map<string, number>();

  add(docId: string, parts: number): void {
    this.#parts.set(docId, parts);
  }

  /** The ids, given all documents of the index. */
  async among(stored: AsyncIterable<StoredDocument>): Promise<readonly string[]> {
    const storedParts = new Map<string, number>();
    const candidates: { readonly docId: string; readonly source: string }[] = [];
    for await (const { doc_id: docId, metadata } of stored) {
      const source = sourceOf(docId, metadata);
      const parts = this.#parts.get(source.docId);
      if (parts === undefined) continue;
      const isPresent = parts === 1 ? source.part === 0 : source.part >= 1 && source.part <= parts;
      if (isPresent) storedParts.set(source.docId, (storedParts.get(source.docId) ?? 0) + 1);
      else if (!this.#parts.has(docId) || source.part === 0) candidates.push({ docId, source: source.docId });
    }
    return candidates
      .filter(({ source }) => storedParts.get(source) === this.#parts.get(source))
      .map(({ docId }) => docId);
  }
}
