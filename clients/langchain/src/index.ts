/** A retriever, a document compressor (reranker) and a vector store for LangChain.js. */
import { randomUUID } from 'node:crypto';
import { Document, type DocumentInterface } from '@langchain/core/documents';
import type { EmbeddingsInterface } from '@langchain/core/embeddings';
import { BaseRetriever, type BaseRetrieverInput } from '@langchain/core/retrievers';
import { BaseDocumentCompressor } from '@langchain/core/retrievers/document_compressors';
import type { RunnableConfig } from '@langchain/core/runnables';
import type { BaseStore } from '@langchain/core/stores';
import { VectorStore } from '@langchain/core/vectorstores';
import type { Maxsimd } from '@maxsimd/client';
import {
  checkStored,
  narrowed,
  type Narrowing,
  refuseUnknown,
  rerank,
  type RerankOptions,
  type RetrievalOptions,
  retrieve,
  type Where,
} from '@maxsimd/client/integrations';

export interface RetrieverOptions extends Narrowing {
  /** Documents at most. By default 10. */
  readonly k?: number | undefined;
}

export interface MaxsimdRetrieverInput extends BaseRetrieverInput, RetrieverOptions, RetrievalOptions {
  readonly client: Maxsimd;
  readonly indexId: string;
}

const known = ['client', 'indexId', 'load', 'textField', 'groupBy', 'k', 'where', 'exact'];

/**
 * The best passages of the best `k` documents of an index, best first. `load` gives texts by `doc_id`, or
 * `textField` is the metadata field that holds them.
 *
 * @example
 * const retriever = new MaxsimdRetriever({ client: new Maxsimd(), indexId, load, k: 5 });
 */
export class MaxsimdRetriever extends BaseRetriever {
  override lc_namespace = ['maxsimd', 'retrievers'];
  readonly #input: MaxsimdRetrieverInput;

  constructor(input: MaxsimdRetrieverInput) {
    refuseUnknown(input, [...known, 'callbacks', 'tags', 'metadata', 'verbose']);
    super(input);
    this.#input = input;
  }

  /**
   * `k`, `where` and `exact` of a call replace those of the retriever. The other options are LangChain's.
   *
   * @example
   * const documents = await retriever.invoke('how do insects communicate?', { k: 3, where: { year: { gte: 2020 } } });
   */
  override invoke(
    query: string,
    { k, where, exact, ...config }: RetrieverOptions & Partial<RunnableConfig> = {},
  ): Promise<DocumentInterface[]> {
    const own = Object.entries({ k, where, exact }).filter(([, value]) => value !== undefined);
    if (own.length === 0) return super.invoke(query, config);
    return new MaxsimdRetriever({ ...this.#input, ...Object.fromEntries(own) }).invoke(query, config);
  }

  /** Called by `invoke`. @internal */
  override async _getRelevantDocuments(query: string): Promise<DocumentInterface[]> {
    const { client, indexId, k = 10, where, exact } = this.#input;
    const found = await retrieve(client, indexId, this.#input, narrowed(query, k, { where, exact }));
    return found.map(({ docId, text, metadata }) => new Document({ id: docId, pageContent: text, metadata }));
  }
}

/**
 * The `topN` best documents, ranked by the service, which stores nothing of them.
 *
 * @example
 * const reranker = new MaxsimdReranker({ client: new Maxsimd(), topN: 3 });
 */
export class MaxsimdReranker extends BaseDocumentCompressor {
  readonly #options: RerankOptions;

  constructor(options: RerankOptions) {
    refuseUnknown(options, ['client', 'topN', 'model']);
    super();
    this.#options = options;
  }

  /**
   * The best documents, best first, each with a `relevance_score` in its metadata.
   *
   * @example
   * const [best] = await reranker.compressDocuments(documents, 'largest animal');
   */
  override async compressDocuments(
    documents: DocumentInterface[],
    query: string,
  ): Promise<DocumentInterface[]> {
    const texts = documents.map((document) => document.pageContent);
    return (await rerank(this.#options, query, texts)).map(({ at, score }) => {
      const document = documents[at]!;
      return new Document({ ...document, metadata: { ...document.metadata, relevance_score: score } });
    });
  }
}

export interface MaxsimdVectorStoreInput {
  readonly client: Maxsimd;
  readonly indexId: string;
  /** Your store. Hits that it does not have are left out. */
  readonly documents: BaseStore<string, DocumentInterface>;
  /** Whether a search scores every document that matches. */
  readonly exact?: boolean | undefined;
}

/**
 * An index of the service, and a store of yours for the documents, because the service keeps no texts. It encodes them
 * itself, so there is no embedding model, and no search by vector or by maximal marginal relevance.
 *
 * @example
 * const store = new MaxsimdVectorStore({ client: new Maxsimd(), indexId, documents: new InMemoryStore() });
 * const retriever = store.asRetriever({ k: 3, filter: { kind: 'insect' } });
 */
export class MaxsimdVectorStore extends VectorStore {
  /** A `where` of the service. */
  declare FilterType: Where;
  readonly #input: MaxsimdVectorStoreInput;

  constructor(input: MaxsimdVectorStoreInput) {
    refuseUnknown(input, ['client', 'indexId', 'documents', 'exact']);
    super(noEmbeddings, {});
    this.#input = input;
  }

  /** The name in traces: `store._vectorstoreType() === 'maxsimd'`. @internal */
  override _vectorstoreType(): string {
    return 'maxsimd';
  }

  /**
   * Stores documents and gives their ids. A document with an id that exists is replaced.
   *
   * @example
   * await store.addDocuments([new Document({ pageContent: 'Honey bees dance.' })], { ids: ['bee'] });
   */
  override async addDocuments(
    documents: DocumentInterface[],
    options: { readonly ids?: readonly string[] } = {},
  ): Promise<string[]> {
    refuseUnknown(options, ['ids']);
    const { client, indexId, documents: store } = this.#input;
    const named = withIds(documents, options.ids);
    const report = await client.import(
      indexId,
      named.map(([doc_id, { pageContent: text, metadata }]) => ({ doc_id, text, metadata })),
    );
    const refused = new Set(report.failed.map(({ doc_id }) => doc_id));
    await store.mset(named.filter(([id]) => !refused.has(id)));
    checkStored(report);
    return named.map(([id]) => id);
  }

  /**
   * Deletes these documents from the index, then from your store. Ids that do not exist are ignored.
   *
   * @example
   * await store.delete({ ids: ['bee'] });
   */
  override async delete(options: { readonly ids: readonly string[] }): Promise<void> {
    refuseUnknown(options, ['ids']);
    const { client, indexId, documents } = this.#input;
    for (const id of options.ids) await client.deleteDocument(indexId, id);
    await documents.mdelete([...options.ids]);
  }

  /**
   * The best `k` documents, best first. `filter` is a `where`.
   *
   * @example
   * const documents = await store.similaritySearch('how do insects communicate?', 3, { year: { gte: 2020 } });
   */
  override async similaritySearch(query: string, k = 4, filter?: Where): Promise<DocumentInterface[]> {
    return (await this.similaritySearchWithScore(query, k, filter)).map(([document]) => document);
  }

  /**
   * `similaritySearch` with the MaxSim score of each document. It orders hits, and has no fixed range.
   *
   * @example
   * const [[document, score]] = await store.similaritySearchWithScore('largest animal', 1);
   */
  override async similaritySearchWithScore(
    query: string,
    k = 4,
    filter?: Where,
  ): Promise<[DocumentInterface, number][]> {
    const { client, indexId, documents, exact } = this.#input;
    const { results } = await client.search(indexId, narrowed(query, k, { where: filter, exact }));
    const stored = await documents.mget(results.map((result) => result.doc_id));
    return results.flatMap(({ score }, at) => {
      const document = stored[at];
      return document === undefined ? [] : [[document, score] as [DocumentInterface, number]];
    });
  }

  /** Refused: there are no vectors. @internal */
  override addVectors(): Promise<never> {
    return refuseVectors();
  }

  /** Refused: there are no vectors. @internal */
  override similaritySearchVectorWithScore(): Promise<never> {
    return refuseVectors();
  }

  /**
   * A store with these texts. There are no embeddings.
   *
   * @example
   * const store = await MaxsimdVectorStore.fromTexts(['Honey bees dance.'], [{ kind: 'insect' }], undefined, input);
   */
  static override fromTexts(
    texts: string[],
    metadatas: object[] | object,
    embeddings: EmbeddingsInterface | undefined,
    input: MaxsimdVectorStoreInput,
  ): Promise<MaxsimdVectorStore> {
    const documents = texts.map((pageContent, at) => {
      const metadata = (Array.isArray(metadatas) ? metadatas[at] : metadatas) as Record<string, unknown>;
      return new Document({ pageContent, metadata });
    });
    return MaxsimdVectorStore.fromDocuments(documents, embeddings, input);
  }

  /**
   * A store with these documents. There are no embeddings.
   *
   * @example
   * const store = await MaxsimdVectorStore.fromDocuments(documents, undefined, input);
   */
  static override async fromDocuments(
    documents: DocumentInterface[],
    embeddings: EmbeddingsInterface | undefined,
    input: MaxsimdVectorStoreInput,
  ): Promise<MaxsimdVectorStore> {
    if (embeddings !== undefined) await refuseVectors();
    const store = new MaxsimdVectorStore(input);
    await store.addDocuments(documents);
    return store;
  }
}

const noEmbeddings: EmbeddingsInterface = { embedDocuments: refuseVectors, embedQuery: refuseVectors };

async function refuseVectors(): Promise<never> {
  throw new TypeError('the service encodes texts itself: it takes no embeddings and no vectors');
}

/** Copies with an id: the given one, their own, or a new one. */
function withIds(
  documents: readonly DocumentInterface[],
  ids: readonly string[] | undefined,
): [string, DocumentInterface][] {
  if (ids !== undefined && ids.length !== documents.length)
    throw new TypeError(`${documents.length} documents have ${ids.length} ids`);
  return documents.map((document, at) => {
    const id = ids?.[at] ?? document.id ?? randomUUID();
    return [id, new Document({ ...document, id })];
  });
}
