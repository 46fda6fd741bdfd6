"""A retriever, a node postprocessor (reranker) and a vector store for LlamaIndex: `pip install "maxsimd[llama-index]"`.

Their asynchronous methods use `async_client`; without one, threads run `client`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from ..asynchronous import AsyncMaxsimd
from ..models import Result
from ..synchronous import Maxsimd
from .conditions import Condition, all_of, any_of, is_missing, of_field
from .texts import (
    PLACES,
    AnyLoad,
    Found,
    TextSource,
    aretrieve,
    arerank,
    asynchronous,
    check_stored,
    narrowed,
    refuse_unknown,
    rerank,
    retrieve,
)


class MaxsimdRetriever(BaseRetriever):
    """The best passages of the best `top_k` documents of an index, best first.

    `load` gives texts by `doc_id`, or `text_field` is the metadata field that holds them. With `group_by`, a metadata
    field, documents with the same value there count as one, by the best of them: of the parts that an import with `cut`
    made, `group_by="part_of"` gives the best of each document.

    Example:
        retriever = MaxsimdRetriever(Maxsimd(), index_id, load, top_k=5, where={"year": {"gte": 2020}})
        nodes = retriever.retrieve("how do insects communicate?")
    """

    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        load: AnyLoad | None = None,
        *,
        text_field: str | None = None,
        group_by: str | None = None,
        async_client: AsyncMaxsimd | None = None,
        top_k: int = 10,
        filter: dict[str, Any] | None = None,
        where: dict[str, Any] | None = None,
        exact: bool | None = None,
    ) -> None:
        self._client = client
        self._async_client = asynchronous(client, async_client)
        self._index_id = index_id
        self._texts = TextSource.of(load, text_field)
        self._group_by = group_by
        self._narrowed = narrowed(top_k, filter=filter, where=where, exact=exact)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        found = retrieve(self._client, self._index_id, self._texts, query, self._narrowed, self._group_by)
        return _nodes(found)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        client = self._async_client
        return _nodes(await aretrieve(client, self._index_id, self._texts, query, self._narrowed, self._group_by))


class MaxsimdReranker(BaseNodePostprocessor):
    """The `top_n` best nodes, ranked by the service, which stores nothing of them.

    Example:
        reranker = MaxsimdReranker(Maxsimd(), top_n=3)
        nodes = reranker.postprocess_nodes(nodes, QueryBundle("largest animal"))
    """

    top_n: int = 10
    _client: Maxsimd = PrivateAttr()
    _async_client: AsyncMaxsimd = PrivateAttr()

    def __init__(self, client: Maxsimd, *, async_client: AsyncMaxsimd | None = None, top_n: int = 10) -> None:
        super().__init__()
        self.top_n = top_n
        self._client = client
        self._async_client = asynchronous(client, async_client)

    @classmethod
    def class_name(cls) -> str:
        """The name in dumps of a pipeline: `MaxsimdReranker.class_name() == "MaxsimdReranker"`."""
        return "MaxsimdReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        ranked = rerank(self._client, _query(query_bundle), _texts(nodes), self.top_n)
        return [NodeWithScore(node=nodes[at].node, score=score) for at, score in ranked]

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        ranked = await arerank(self._async_client, _query(query_bundle), _texts(nodes), self.top_n)
        return [NodeWithScore(node=nodes[at].node, score=score) for at, score in ranked]


class MaxsimdVectorStore(BasePydanticVectorStore):
    """An index of the service, and a docstore of yours for the nodes, because the service keeps no texts.

    The service encodes texts itself. A `VectorStoreIndex` embeds nodes all the same, so give it a `MockEmbedding`.

    Example:
        store = MaxsimdVectorStore(Maxsimd(), index_id, SimpleDocumentStore())
        index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=1))
    """

    _client: Maxsimd = PrivateAttr()
    _async_client: AsyncMaxsimd = PrivateAttr()
    _index_id: UUID | str = PrivateAttr()
    _docstore: BaseDocumentStore = PrivateAttr()

    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        docstore: BaseDocumentStore,
        *,
        async_client: AsyncMaxsimd | None = None,
    ) -> None:
        super().__init__(stores_text=True, is_embedding_query=False)
        self._client = client
        self._async_client = asynchronous(client, async_client)
        self._index_id = index_id
        self._docstore = docstore

    @classmethod
    def class_name(cls) -> str:
        """The name in dumps of a pipeline: `MaxsimdVectorStore.class_name() == "MaxsimdVectorStore"`."""
        return "MaxsimdVectorStore"

    @property
    def client(self) -> Maxsimd:
        """The client that was given: `store.client.get_index(index_id)`."""
        return self._client

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Stores nodes and gives their ids. A node with an id that exists is replaced.

        Example:
            store.add([TextNode(id_="bee", text="Honey bees dance.", metadata={"kind": "insect"})])
        """
        refuse_unknown(kwargs)
        report = self._client.import_documents(self._index_id, map(_sent, nodes))
        refused = {failure.doc_id for failure in report.failed}
        self._docstore.add_documents(_kept(nodes, refused))
        check_stored(report)
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """`add` for asyncio.

        Example:
            await store.async_add([TextNode(id_="bee", text="Honey bees dance.")])
        """
        refuse_unknown(kwargs)
        report = await self._async_client.import_documents(self._index_id, map(_sent, nodes))
        refused = {failure.doc_id for failure in report.failed}
        await self._docstore.async_add_documents(_kept(nodes, refused))
        check_stored(report)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Deletes the nodes of a document from the index, then from your docstore.

        Example:
            store.delete("handbook.pdf")
        """
        refuse_unknown(delete_kwargs)
        while self._client.delete_documents(self._index_id, filter={"ref_doc_id": ref_doc_id}).more:
            pass
        self._docstore.delete_ref_doc(ref_doc_id, raise_error=False)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """`delete` for asyncio.

        Example:
            await store.adelete("handbook.pdf")
        """
        refuse_unknown(delete_kwargs)
        while (await self._async_client.delete_documents(self._index_id, filter={"ref_doc_id": ref_doc_id})).more:
            pass
        await self._docstore.adelete_ref_doc(ref_doc_id, raise_error=False)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Deletes these nodes from the index, then from your docstore.

        Example:
            store.delete_nodes(["bee"])
        """
        refuse_unknown(delete_kwargs)
        for node_id in _chosen(node_ids, filters):
            self._client.delete_document(self._index_id, node_id)
            self._docstore.delete_document(node_id, raise_error=False)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """`delete_nodes` for asyncio.

        Example:
            await store.adelete_nodes(["bee"])
        """
        refuse_unknown(delete_kwargs)
        for node_id in _chosen(node_ids, filters):
            await self._async_client.delete_document(self._index_id, node_id)
            await self._docstore.adelete_document(node_id, raise_error=False)

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """These nodes from your docstore; the ones that it does not have are left out.

        Example:
            [bee] = store.get_nodes(["bee"])
        """
        return self._docstore.get_nodes(_chosen(node_ids, filters), raise_error=False)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """`get_nodes` for asyncio.

        Example:
            [bee] = await store.aget_nodes(["bee"])
        """
        return await self._docstore.aget_nodes(_chosen(node_ids, filters), raise_error=False)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes, best first. Takes `where` and `exact` of the service's own search, too.

        Example:
            found = store.query(VectorStoreQuery(query_str="largest animal", similarity_top_k=3), exact=True)
        """
        results = self._client.search(self._index_id, **_search(query, **kwargs)).results
        nodes = self._docstore.get_nodes([result.doc_id for result in results], raise_error=False)
        return _found(results, nodes)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """`query` for asyncio.

        Example:
            found = await store.aquery(VectorStoreQuery(query_str="largest animal"))
        """
        results = (await self._async_client.search(self._index_id, **_search(query, **kwargs))).results
        nodes = await self._docstore.aget_nodes([result.doc_id for result in results], raise_error=False)
        return _found(results, nodes)


_OPERATORS: dict[FilterOperator, Callable[[Any], dict[str, Any]]] = {
    FilterOperator.EQ: lambda value: {"in": [value]},
    FilterOperator.NE: lambda value: {"not": {"in": [value]}},
    FilterOperator.GT: lambda value: {"gt": value},
    FilterOperator.GTE: lambda value: {"gte": value},
    FilterOperator.LT: lambda value: {"lt": value},
    FilterOperator.LTE: lambda value: {"lte": value},
    FilterOperator.IN: lambda value: {"in": value},
    FilterOperator.NIN: lambda value: {"not": {"in": value}},
    FilterOperator.ANY: lambda value: {"contains_any": value},
    FilterOperator.ALL: lambda value: {"contains_all": value},
    FilterOperator.CONTAINS: lambda value: {"contains_all": [value]},
    FilterOperator.IS_EMPTY: lambda _: is_missing(None, []),
}


def _condition(filters: MetadataFilters | MetadataFilter) -> Condition:
    if isinstance(filters, MetadataFilters):
        parts = map(_condition, filters.filters)
        if filters.condition == FilterCondition.NOT:
            raise ValueError("the service has no condition `not` of several fields; use `!=` and `nin`")
        return any_of(parts) if filters.condition == FilterCondition.OR else all_of(parts)
    if filters.operator not in _OPERATORS:
        raise ValueError(f"the service has no operator `{filters.operator.value}`")
    return of_field(filters.key, _OPERATORS[filters.operator](filters.value))


def _search(
    query: VectorStoreQuery, where: Condition | None = None, exact: bool | None = None, **unknown: Any
) -> dict[str, Any]:
    refuse_unknown(unknown)
    if query.query_str is None or query.mode != VectorStoreQueryMode.DEFAULT:
        raise ValueError("the service searches by `query_str`, in the mode `default`")
    chosen = {"node_id": query.node_ids, "ref_doc_id": query.doc_ids}
    conditions = [{field: {"in": ids}} for field, ids in chosen.items() if ids]
    if query.filters is not None:
        conditions.append(_condition(query.filters))
    if where is not None and conditions:
        raise ValueError("give either `where`, or `filters`, `node_ids` and `doc_ids`")
    found = all_of(conditions) if where is None else where
    return {"query": query.query_str, **narrowed(query.similarity_top_k, where=found or None, exact=exact)}


def _chosen(node_ids: list[str] | None, filters: MetadataFilters | None) -> list[str]:
    if node_ids is None or filters is not None:
        raise ValueError("nodes are named by `node_ids` alone")
    return node_ids


def _sent(node: BaseNode) -> dict[str, Any]:
    own = {"node_id": node.node_id, "ref_doc_id": node.ref_doc_id}
    text = node.get_content(metadata_mode=MetadataMode.EMBED)
    return {"doc_id": node.node_id, "text": text, "metadata": {**node.metadata, **own}}


def _kept(nodes: Iterable[BaseNode], refused: set[str]) -> list[BaseNode]:
    return [node.model_copy(update={"embedding": None}) for node in nodes if node.node_id not in refused]


def _found(results: Sequence[Result], nodes: Iterable[BaseNode]) -> VectorStoreQueryResult:
    by_id = {node.node_id: node for node in nodes}
    hits = [result for result in results if result.doc_id in by_id]
    return VectorStoreQueryResult(
        nodes=[by_id[hit.doc_id] for hit in hits],
        similarities=[hit.score for hit in hits],
        ids=[hit.doc_id for hit in hits],
    )


def _nodes(found: Iterable[Found]) -> list[NodeWithScore]:
    hidden = {"excluded_llm_metadata_keys": list(PLACES), "excluded_embed_metadata_keys": list(PLACES)}
    return [
        NodeWithScore(node=TextNode(id_=one.doc_id, text=one.text, metadata=one.metadata, **hidden), score=one.score)
        for one in found
    ]


def _texts(nodes: Iterable[NodeWithScore]) -> list[str]:
    return [node.node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]


def _query(query_bundle: QueryBundle | None) -> str:
    if query_bundle is None:
        raise ValueError("a reranker needs the query")
    return query_bundle.query_str
