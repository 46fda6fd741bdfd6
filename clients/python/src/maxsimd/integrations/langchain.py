"""A retriever and a document compressor (reranker) for LangChain: `pip install "maxsimd[langchain]"`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from ..synchronous import Maxsimd
from .texts import Load, metadata_of, rerank, retrieve


class MaxsimdRetriever(BaseRetriever):
    """The best `top_k` documents of an index, best first."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Maxsimd
    index_id: str
    load: Load
    top_k: int = 10
    filter: dict[str, Any] | None = None
    where: dict[str, Any] | None = None
    exact: bool | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        narrowed = (self.filter, self.where, self.exact)
        found = retrieve(self.client, self.index_id, self.load, query, self.top_k, *narrowed)
        return [
            Document(id=result.doc_id, page_content=text, metadata=metadata_of(result))
            for result, text in found
        ]


class MaxsimdReranker(BaseDocumentCompressor):
    """The `top_n` best documents, ranked by the service, which stores nothing of them."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Maxsimd
    top_n: int = 10

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        ranked = rerank(self.client, query, [document.page_content for document in documents], self.top_n)
        return [_scored(documents[at], score) for at, score in ranked]


def _scored(document: Document, score: float) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, "relevance_score": score}})
