"""A retriever for Haystack: `pip install "maxsimd[haystack]"`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from haystack import Document, component

from ..synchronous import Maxsimd
from .texts import Load, metadata_of, retrieve


@component
class MaxsimdRetriever:
    """The best `top_k` documents of an index, best first."""

    def __init__(
        self, client: Maxsimd, index_id: UUID | str, load: Load, *, top_k: int = 10, exact: bool | None = None
    ) -> None:
        self._client = client
        self._index_id = index_id
        self._load = load
        self._top_k = top_k
        self._exact = exact

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        where: dict[str, Any] | None = None,
    ) -> dict[str, list[Document]]:
        """`filters` are exact matches of metadata fields, and `where` conditions, as in the service's own search."""
        narrowed = (filters, where, self._exact)
        found = retrieve(self._client, self._index_id, self._load, query, top_k or self._top_k, *narrowed)
        documents = [
            Document(id=result.doc_id, content=text, meta=metadata_of(result), score=result.score)
            for result, text in found
        ]
        return {"documents": documents}
