"""What the parts for all frameworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ..models import Result
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
    where: Mapping[str, Any] | None = None,
    exact: bool | None = None,
) -> list[tuple[Result, str]]:
    """The best `top_k` documents with their texts, best first. The service groups chunks by document."""
    results = client.search(
        index_id, query, top_k=top_k, filter=filter, where=where, exact=exact, group_by_document=True
    ).results
    texts = load([result.doc_id for result in results]) if results else {}
    return [(result, texts[result.doc_id]) for result in results if result.doc_id in texts]


def metadata_of(result: Result) -> dict[str, Any]:
    """The document's own, with where its best chunk was found."""
    found = {name: getattr(result, name) for name in ("doc_id", "chunk_id", "chunk_index", "score")}
    return {**result.metadata, **found}


def positions(texts: Sequence[str]) -> list[dict[str, str]]:
    """Documents for a score request, named by their positions; an empty text cannot be ranked."""
    if len(texts) > RERANKED_MAX:
        raise ValueError(f"at most {RERANKED_MAX} documents: scores of two requests do not compare")
    return [{"doc_id": str(at), "text": text} for at, text in enumerate(texts) if text != ""]
