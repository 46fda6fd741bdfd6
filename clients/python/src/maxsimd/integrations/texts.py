"""What the parts for all frameworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..models import Ranked, Result

Load = Callable[[Sequence[str]], Mapping[str, str]]

RERANKED_MAX = 50
"""Documents of one score request."""


def best_of_each_document(ranked: Ranked) -> list[Result]:
    """A document stands where its best chunk does, once."""
    best: dict[str, Result] = {}
    for result in ranked.results:
        best.setdefault(result.doc_id, result)
    return list(best.values())


def with_texts(ranked: Ranked, load: Load) -> list[tuple[Result, str]]:
    results = best_of_each_document(ranked)
    texts = load([result.doc_id for result in results]) if results else {}
    return [(result, texts[result.doc_id]) for result in results if result.doc_id in texts]


def metadata_of(result: Result) -> dict[str, Any]:
    """The document's own, with where it was found."""
    return {
        **result.metadata,
        "doc_id": result.doc_id,
        "chunk_id": result.chunk_id,
        "chunk_index": result.chunk_index,
        "score": result.score,
    }


def positions(texts: Sequence[str]) -> list[dict[str, str]]:
    """Documents for a score request, named by their positions; an empty text cannot be ranked."""
    if len(texts) > RERANKED_MAX:
        raise ValueError(f"at most {RERANKED_MAX} documents: scores of two requests do not compare")
    return [{"doc_id": str(at), "text": text} for at, text in enumerate(texts) if text != ""]
