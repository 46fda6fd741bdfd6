"""A retriever and a node postprocessor (reranker) for LlamaIndex: `pip install "maxsimd[llama-index]"`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from ..synchronous import Maxsimd
from .texts import Load, metadata_of, rerank, retrieve


class MaxsimdRetriever(BaseRetriever):
    """The best `top_k` documents of an index, best first."""

    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        load: Load,
        *,
        top_k: int = 10,
        filter: dict[str, Any] | None = None,
        where: dict[str, Any] | None = None,
        exact: bool | None = None,
    ) -> None:
        self._client = client
        self._index_id = index_id
        self._load = load
        self._top_k = top_k
        self._narrowed = (filter, where, exact)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        found = retrieve(self._client, self._index_id, self._load, query, self._top_k, *self._narrowed)
        return [
            NodeWithScore(node=TextNode(id_=result.doc_id, text=text, metadata=metadata_of(result)), score=result.score)
            for result, text in found
        ]


class MaxsimdReranker(BaseNodePostprocessor):
    """The `top_n` best nodes, ranked by the service, which stores nothing of them."""

    top_n: int = 10
    _client: Maxsimd = PrivateAttr()

    def __init__(self, client: Maxsimd, *, top_n: int = 10) -> None:
        super().__init__()
        self.top_n = top_n
        self._client = client

    @classmethod
    def class_name(cls) -> str:
        return "MaxsimdReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("a reranker needs the query")
        texts = [node.node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        ranked = rerank(self._client, query_bundle.query_str, texts, self.top_n)
        return [NodeWithScore(node=nodes[at].node, score=score) for at, score in ranked]
