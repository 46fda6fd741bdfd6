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


def rerank(client: Maxsimd, query: str, texts: Sequence[str], top_n: int) -> list[tuple[int, float]]:
    """Positions and scores of the `top_n` best texts, best first. An empty text cannot be ranked.

    Long lists take several requests. Their scores compare, because query and model are the same.
    """
    documents = [{"doc_id": str(at), "text": text} for at, text in enumerate(texts) if text != ""]
    requests = [documents[at : at + RERANKED_MAX] for at in range(0, len(documents), RERANKED_MAX)]
    scores = [
        (int(result.doc_id), result.score) for request in requests for result in client.score(query, request).results
    ]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))[:top_n]
