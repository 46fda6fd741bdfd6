"""What the parts for all frameworks have in common."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from ..asynchronous import AsyncMaxsimd
from ..errors import MaxsimdError
from ..imports import ImportReport
from ..models import Result, StoredDocument
from ..synchronous import Maxsimd

Load = Callable[[Sequence[str]], Mapping[str, str]]
AnyLoad = Load | Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""An asynchronous one serves the asynchronous methods only."""

RERANKED_MAX = 50
"""Documents of one score request."""


class _Threaded:
    """The asynchronous methods of a client that blocks: a thread runs each call."""

    def __init__(self, client: Maxsimd) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._client, name)
        return lambda *args, **named: asyncio.to_thread(method, *args, **named)

    async def list_documents(self, index_id: UUID | str) -> AsyncIterator[StoredDocument]:
        for document in await asyncio.to_thread(lambda: list(self._client.list_documents(index_id))):
            yield document


def asynchronous(client: Maxsimd, async_client: AsyncMaxsimd | None) -> AsyncMaxsimd:
    """The client for asyncio, or threads in its place."""
    return cast(AsyncMaxsimd, _Threaded(client)) if async_client is None else async_client


def retrieve(
    client: Maxsimd,
    index_id: UUID | str,
    load: AnyLoad,
    query: str,
    top_k: int,
    filter: Mapping[str, Any] | None,
    where: Mapping[str, Any] | None = None,
    exact: bool | None = None,
) -> list[tuple[Result, str]]:
    """The best `top_k` documents with their texts, best first. The service groups chunks by document."""
    if inspect.iscoroutinefunction(load):
        raise TypeError("`load` is asynchronous: only the asynchronous methods can call it")
    results = client.search(
        index_id, query, top_k=top_k, filter=filter, where=where, exact=exact, group_by_document=True
    ).results
    return _joined(results, cast(Load, load)(_ids(results)) if results else {})


async def aretrieve(
    client: AsyncMaxsimd,
    index_id: UUID | str,
    load: AnyLoad,
    query: str,
    top_k: int,
    filter: Mapping[str, Any] | None,
    where: Mapping[str, Any] | None = None,
    exact: bool | None = None,
) -> list[tuple[Result, str]]:
    """`retrieve` for asyncio. A thread runs a `load` that blocks."""
    results = (
        await client.search(
            index_id, query, top_k=top_k, filter=filter, where=where, exact=exact, group_by_document=True
        )
    ).results
    if not results:
        return []
    if inspect.iscoroutinefunction(load):
        return _joined(results, await load(_ids(results)))
    return _joined(results, await asyncio.to_thread(cast(Load, load), _ids(results)))


def metadata_of(result: Result) -> dict[str, Any]:
    """The document's own, with where its best chunk was found."""
    found = {name: getattr(result, name) for name in ("doc_id", "chunk_id", "chunk_index", "score")}
    return {**result.metadata, **found}


def rerank(client: Maxsimd, query: str, texts: Sequence[str], top_n: int) -> list[tuple[int, float]]:
    """Positions and scores of the `top_n` best texts, best first. An empty text cannot be ranked.

    Long lists take several requests. Their scores compare, because query and model are the same.
    """
    return _best([one for request in _requests(texts) for one in client.score(query, request).results], top_n)


async def arerank(client: AsyncMaxsimd, query: str, texts: Sequence[str], top_n: int) -> list[tuple[int, float]]:
    """`rerank` for asyncio."""
    return _best([one for request in _requests(texts) for one in (await client.score(query, request)).results], top_n)


def check_stored(report: ImportReport) -> None:
    """Raises if the service refused documents of an import."""
    if report.failed:
        reasons = "; ".join(f"{failure.doc_id}: {failure.error}" for failure in report.failed[:5])
        raise MaxsimdError(f"{len(report.failed)} documents were refused and are not stored: {reasons}")


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Raises for parameters that a framework's signature lets through."""
    if options:
        raise TypeError(f"unknown parameters: {', '.join(sorted(options))}")


def _ids(results: Sequence[Result]) -> list[str]:
    return [result.doc_id for result in results]


def _joined(results: Sequence[Result], texts: Mapping[str, str]) -> list[tuple[Result, str]]:
    return [(result, texts[result.doc_id]) for result in results if result.doc_id in texts]


def _requests(texts: Sequence[str]) -> list[list[dict[str, str]]]:
    documents = [{"doc_id": str(at), "text": text} for at, text in enumerate(texts) if text != ""]
    return [documents[at : at + RERANKED_MAX] for at in range(0, len(documents), RERANKED_MAX)]


def _best(results: Sequence[Result], top_n: int) -> list[tuple[int, float]]:
    scores = [(int(result.doc_id), result.score) for result in results]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))[:top_n]
