"""What the parts for all frameworks have in common."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast
from uuid import UUID

from ..asynchronous import AsyncMaxsimd
from ..errors import MaxsimdError
from ..imports import ImportReport
from ..models import Result, StoredDocument
from ..passages import highlights, passage
from ..synchronous import Maxsimd

Load = Callable[[Sequence[str]], Mapping[str, str]]
AnyLoad = Load | Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""An asynchronous one serves the asynchronous methods only."""


class TextSource(NamedTuple):
    """Where the texts are: in your own store, or in a metadata field of the documents. One of the two is given."""

    load: AnyLoad | None
    field: str | None

    @classmethod
    def of(cls, load: AnyLoad | None, field: str | None) -> TextSource:
        if (load is None) == (field is None):
            raise TypeError("give either `load` or `text_field`")
        return cls(load, field)


RERANKED_MAX = 50
"""Documents of one score request."""


DETAILED_MAX = 10
"""Documents of one search, each with up to ten chunks, that may have components."""


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


class Found(NamedTuple):
    """The best passage of a document."""

    doc_id: str
    text: str
    score: float
    metadata: dict[str, Any]
    """The document's own, with where the passage was found. Positions are those in the whole text."""


PLACES = ("text_range", "highlights")
"""Fields of the metadata that are for programs, not for a prompt."""


def narrowed(
    top_k: int,
    /,
    *,
    filter: Mapping[str, Any] | None = None,
    where: Mapping[str, Any] | None = None,
    exact: bool | None = None,
    **unknown: Any,
) -> dict[str, Any]:
    """Parameters of a search for the best documents."""
    refuse_unknown(unknown)
    return {"top_k": top_k, "filter": filter, "where": where, "exact": exact, "group_by_document": True}


def retrieve(
    client: Maxsimd, index_id: UUID | str, texts: TextSource, query: str, options: Mapping[str, Any]
) -> list[Found]:
    """The best passages of the best documents, best first. `options` are those of `narrowed`."""
    load, field = texts
    if field is not None:
        wanted = {"passage": {"from": field}, **_components(options)}
        return _found_in_field(client.search(index_id, query, **wanted, **options).results, field)
    if inspect.iscoroutinefunction(load):
        raise TypeError("`load` is asynchronous: only the asynchronous methods can call it")
    results = client.search(index_id, query, **_components(options), **options).results
    return _found(results, cast(Load, load)(_ids(results)) if results else {})


async def aretrieve(
    client: AsyncMaxsimd, index_id: UUID | str, texts: TextSource, query: str, options: Mapping[str, Any]
) -> list[Found]:
    """`retrieve` for asyncio. A thread runs a `load` that blocks."""
    load, field = texts
    if field is not None:
        wanted = {"passage": {"from": field}, **_components(options)}
        return _found_in_field((await client.search(index_id, query, **wanted, **options)).results, field)
    results = (await client.search(index_id, query, **_components(options), **options)).results
    if not results:
        return []
    if inspect.iscoroutinefunction(load):
        return _found(results, await load(_ids(results)))
    return _found(results, await asyncio.to_thread(cast(Load, load), _ids(results)))


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


def _components(options: Mapping[str, Any]) -> dict[str, bool]:
    """Without components there are no highlights."""
    return {"return_components": options["top_k"] <= DETAILED_MAX}


def _ids(results: Sequence[Result]) -> list[str]:
    return [result.doc_id for result in results]


def _found(results: Sequence[Result], texts: Mapping[str, str]) -> list[Found]:
    known = [(result, texts[result.doc_id]) for result in results if result.doc_id in texts]
    return [
        Found(result.doc_id, passage(text, result), result.score, _metadata(result, text)) for result, text in known
    ]


def _found_in_field(results: Sequence[Result], field: str) -> list[Found]:
    """A document without a passage is left out. The passage stands for the text in the metadata."""
    found = []
    for result in results:
        if result.passage is None:
            continue
        own = {name: value for name, value in result.metadata.items() if name != field}
        words = [word.model_dump() for word in result.passage.highlights or []]
        metadata = {**own, **_places(result), "highlights": words}
        found.append(Found(result.doc_id, result.passage.text, result.score, metadata))
    if results and not found:
        raise MaxsimdError(
            f"no result has a passage in the metadata field {field!r}: is it the field that holds the text, as it was upserted?"
        )
    return found


def _metadata(result: Result, text: str) -> dict[str, Any]:
    words = [one._asdict() for one in highlights(text, result)]
    return {**result.metadata, **_places(result), "highlights": words}


def _places(result: Result) -> dict[str, Any]:
    place = {name: getattr(result, name) for name in ("doc_id", "chunk_id", "chunk_index", "score")}
    found = result.text_range
    return {**place, "text_range": None if found is None else found.model_dump()}


def _requests(texts: Sequence[str]) -> list[list[dict[str, str]]]:
    documents = [{"doc_id": str(at), "text": text} for at, text in enumerate(texts) if text != ""]
    return [documents[at : at + RERANKED_MAX] for at in range(0, len(documents), RERANKED_MAX)]


def _best(results: Sequence[Result], top_n: int) -> list[tuple[int, float]]:
    scores = [(int(result.doc_id), result.score) for result in results]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))[:top_n]
