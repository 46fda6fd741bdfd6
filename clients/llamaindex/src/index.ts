/** A retriever, a node postprocessor (reranker) and a vector store for LlamaIndex.TS. */
import { BaseEmbedding } from '@llamaindex/core/embeddings';
import type { MessageContent } from '@llamaindex/core/llms';
import type { BaseNodePostprocessor } from '@llamaindex/core/postprocessor';
import type { QueryBundle } from '@llamaindex/core/query-engine';
import { BaseRetriever } from '@llamaindex/core/retriever';
import { type BaseNode, MetadataMode, type NodeWithScore, TextNode } from '@llamaindex/core/schema';
import type { BaseDocumentStore } from '@llamaindex/core/storage/doc-store';
import { extractText } from '@llamaindex/core/utils';
import {
  BaseVectorStore,
  type VectorStoreQuery,
  VectorStoreQueryMode,
  type VectorStoreQueryResult,
} from '@llamaindex/core/vector-store';
import type { Maxsimd } from '@maxsimd/client';
import {
  checkStored,
  narrowed,
  type Narrowing,
  places,
  refuseUnknown,
  rerank,
  type RerankOptions,
  type RetrievalOptions,
  retrieve,
} from '@maxsimd/client/integrations';
import { allOf, whereOf } from './conditions.ts';

export interface MaxsimdRetrieverOptions extends Narrowing, RetrievalOptions {
  readonly client: Maxsimd;
  readonly indexId: string;
  /** Documents at most. By default 10. */
  readonly topK?: number | undefined;
}

/**
 * The best passages of the best `topK` documents of an index, best first. `load` gives texts by `doc_id`,
 * or `textField` is the metadata field that holds them.
 *
 * @example
 * const retriever = new MaxsimdRetriever({ client: new Maxsimd(), indexId, load, where: { year: { gte: 2020 } } });
 * const nodes = await retriever.retrieve('how do insects communicate?');
 */
export class MaxsimdRetriever extends BaseRetriever {
  readonly #options: MaxsimdRetrieverOptions;

  constructor(options: MaxsimdRetrieverOptions) {
    refuseUnknown(options, ['client', 'indexId', 'load', 'textField', 'groupBy', 'topK', 'where', 'exact']);
    super();
    this.#options = options;
  }

  /** Called by `retrieve`. @internal */
  override async _retrieve({ query }: QueryBundle): Promise<NodeWithScore[]> {
    const { client, indexId, topK = 10, where, exact } = this.#options;
    const search = narrowed(extractText(query), topK, { where, exact });
    const hidden = { excludedLlmMetadataKeys: [...places], excludedEmbedMetadataKeys: [...places] };
    return (await retrieve(client, indexId, this.#options, search)).map(
      ({ docId, text, metadata, score }) => ({
        node: new TextNode({ id_: docId, text, metadata, ...hidden }),
        score,
      }),
    );
  }
}

/**
 * The `topN` best nodes, ranked by the service, which stores nothing of them.
 *
 * @example
 * const reranker = new MaxsimdReranker({ client: new Maxsimd(), topN: 3 });
 * const engine = index.asQueryEngine({ nodePostprocessors: [reranker] });
 */
export class MaxsimdReranker implements BaseNodePostprocessor {
  readonly #options: RerankOptions;

  constructor(options: RerankOptions) {
    refuseUnknown(options, ['client', 'topN', 'model']);
    this.#options = options;
  }

  /**
   * The best nodes, best first, with the scores of the service.
   *
   * @example
   * const [best] = await reranker.postprocessNodes(nodes, 'largest animal');
   */
  async postprocessNodes(nodes: NodeWithScore[], query?: MessageContent): Promise<NodeWithScore[]> {
    if (query === undefined) throw new TypeError('a reranker needs the query');
    const texts = nodes.map(({ node }) => node.getContent(MetadataMode.NONE));
    const ranked = await rerank(this.#options, extractText(query), texts);
    return ranked.map(({ at, score }) => ({ node: nodes[at]!.node, score }));
  }
}

/**
 * Stands for the embedding model that a `VectorStoreIndex` always calls. The service encodes texts itself.
 *
 * @example
 * Settings.embedModel = new NoEmbedding();
 */
export class NoEmbedding extends BaseEmbedding {
  // oxlint-disable-next-line no-useless-constructor -- that of the class above is protected
  constructor() {
    super();
  }

  /**
   * A vector that nothing uses.
   *
   * @example
   * const vector = await new NoEmbedding().getTextEmbedding('Honey bees dance.');
   */
  override async getTextEmbedding(_text: string): Promise<number[]> {
    return [0];
  }
}

export interface MaxsimdVectorStoreOptions {
  readonly client: Maxsimd;
  readonly indexId: string;
  /** Yours, for the nodes. Hits that it does not have are left out. */
  readonly docStore: BaseDocumentStore;
}

/**
 * An index of the service, and a document store of yours for the nodes, because the service keeps no texts.
 *
 * @example
 * const docStore = new KVDocumentStore(new SimpleKVStore());
 * const store = new MaxsimdVectorStore({ client: new Maxsimd(), indexId, docStore });
 * const index = await VectorStoreIndex.fromVectorStore(store);
 */
export class MaxsimdVectorStore extends BaseVectorStore<Maxsimd, Narrowing> {
  override storesText = true;
  override isEmbeddingQuery = false;
  readonly #options: MaxsimdVectorStoreOptions;

  constructor(options: MaxsimdVectorStoreOptions) {
    refuseUnknown(options, ['client', 'indexId', 'docStore']);
    super({ embedModel: new NoEmbedding() });
    this.#options = options;
  }

  /**
   * The client that was given.
   *
   * @example
   * const { documents } = await store.client().countDocuments(indexId);
   */
  override client(): Maxsimd {
    return this.#options.client;
  }

  /**
   * Stores nodes and gives their ids. A node with an id that exists is replaced.
   *
   * @example
   * await store.add([new TextNode({ id_: 'bee', text: 'Honey bees dance.', metadata: { kind: 'insect' } })]);
   */
  override async add(nodes: BaseNode[]): Promise<string[]> {
    const { client, indexId, docStore } = this.#options;
    const report = await client.import(indexId, nodes.map(sent));
    const refused = new Set(report.failed.map(({ doc_id }) => doc_id));
    await docStore.addDocuments(
      nodes.filter(({ id_ }) => !refused.has(id_)),
      true,
    );
    checkStored(report);
    return nodes.map(({ id_ }) => id_);
  }

  /**
   * Deletes the nodes of a document from the index, then from your document store.
   *
   * @example
   * await store.delete('handbook.pdf');
   */
  override async delete(refDocId: string, options: object = {}): Promise<void> {
    refuseUnknown(options);
    const { client, indexId, docStore } = this.#options;
    const filter = { ref_doc_id: refDocId };
    while ((await client.deleteDocuments(indexId, { filter })).more);
    await docStore.deleteRefDoc(refDocId, false);
  }

  /**
   * The best nodes, best first. `customParams` has `where` and `exact` of the service's own search.
   *
   * @example
   * const query = { queryStr: 'largest animal', similarityTopK: 3, mode: VectorStoreQueryMode.DEFAULT };
   * const { nodes } = await store.query({ ...query, customParams: { exact: true } });
   */
  override async query(
    query: VectorStoreQuery<Narrowing>,
    options: object = {},
  ): Promise<VectorStoreQueryResult> {
    refuseUnknown(options);
    const { client, indexId, docStore } = this.#options;
    const { results } = await client.search(indexId, searchOf(query));
    const stored = await Promise.all(results.map(({ doc_id }) => docStore.getDocument(doc_id, false)));
    const hits = results.flatMap(({ score }, at) => {
      const node = stored[at];
      return node === undefined ? [] : [{ node, score }];
    });
    return {
      nodes: hits.map(({ node }) => node),
      similarities: hits.map(({ score }) => score),
      ids: hits.map(({ node }) => node.id_),
    };
  }
}

function searchOf({
  queryStr,
  mode,
  filters,
  docIds,
  customParams = {},
  similarityTopK,
}: VectorStoreQuery<Narrowing>) {
  if (queryStr === undefined || mode !== VectorStoreQueryMode.DEFAULT)
    throw new TypeError('the service searches by `queryStr`, in the mode `default`');
  refuseUnknown(customParams, ['where', 'exact']);
  const conditions = [
    ...(docIds === undefined ? [] : [{ ref_doc_id: { in: docIds } }]),
    ...(filters === undefined ? [] : [whereOf(filters)]),
  ];
  if (customParams.where !== undefined && conditions.length > 0)
    throw new TypeError('give either `where`, or `filters` and `docIds`');
  return narrowed(queryStr, similarityTopK, { where: allOf(conditions), ...customParams });
}

/** The service gets the text with its metadata, as an embedding model would. */
function sent(node: BaseNode) {
  const own = { node_id: node.id_, ref_doc_id: node.sourceNode?.nodeId ?? null };
  const text = node.getContent(MetadataMode.EMBED);
  return { doc_id: node.id_, text, metadata: { ...node.metadata, ...own } };
}
