"""What the parts for all frameworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ..models import QueryResult
from ..synchronous import Maxsimd

Load = Callable[[Sequence[str]], Mapping[str, str]]

RERANKED_MAX = 50
"""Documents of one score request."""


def retrieve(
    client: Maxsimd,
    index_id: UUID | str,
    load: Load,
    query: str,
    top_k: int,
    filter: Mapping[str, Any] | None,
) -> list[tuple[QueryResult, str]]:
    """The best `top_k` documents with their texts, best first. The service groups chunks by document."""
    item: dict[str, Any] = {"query": query, "top_k": top_k, "group_by_document": True}
    if filter is not None:
        item["filter"] = filter
    results = client.query(index_id, [item]).results[0].results
    texts = load([result.doc_id for result in results]) if results else {}
    return [(result, texts[result.doc_id]) for result in results if result.doc_id in texts]


def metadata_of(result: QueryResult) -> dict[str, Any]:
    """The document's own, with where its best chunk was found."""
    found = {} if not result.chunks else {name: getattr(result.chunks[0], name) for name in ("chunk_id", "chunk_index")}
    return {**result.metadata, "doc_id": result.doc_id, **found, "score": result.score}


def positions(texts: Sequence[str]) -> list[dict[str, str]]:
    """Documents for a score request, named by their positions; an empty text cannot be ranked."""
    if len(texts) > RERANKED_MAX:
        raise ValueError(f"at most {RERANKED_MAX} documents: scores of two requests do not compare")
    return [{"doc_id": str(at), "text": text} for at, text in enumerate(texts) if text != ""]
