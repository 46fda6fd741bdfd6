"""What the parts for all frameworks have in common."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast
from uuid import UUID

from .. import calls
from ..asynchronous import AsyncMaxsimd
from ..calls import Call
from ..errors import InvalidRequestError, MaxsimdError
from ..imports import ImportReport
from ..models import Reranked, Result, StoredDocument
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


RERANKED_MAX = 1000
"""Texts of one rerank request."""

RERANKED_BYTES = 400_000
"""UTF-8 bytes of the texts of one rerank request: some 100,000 tokens, which is what a request may have."""

RERANKED_TOKENS = 100_000
"""Tokens that count of one text."""

RERANKED_CHARACTERS = 100 << 10
"""Characters that may count of one text. The service reads so many bytes."""

DETAILED_MAX = 10
"""Documents of one search, each with up to ten chunks, that may have components."""

PAGES_MAX = 10
"""Searches for one grouped retrieval. With 100 results each they reach the greatest `offset`."""


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
    client: Maxsimd,
    index_id: UUID | str,
    texts: TextSource,
    query: str,
    options: Mapping[str, Any],
    group_by: str | None = None,
) -> list[Found]:
    """The best passages of the best documents, best first. `options` are those of `narrowed`.

    Documents with the same value in the metadata field `group_by` count as one, by the best of them.
    """
    load, field = texts
    if inspect.iscoroutinefunction(load):
        raise TypeError("`load` is asynchronous: only the asynchronous methods can call it")
    pages = _Pages(field, options, group_by)
    while (page := pages.next()) is not None:
        pages.add(client.search(index_id, query, **page).results)
    results = pages.best()
    if field is not None:
        return _found_in_field(results, field)
    return _found(results, cast(Load, load)(_ids(results)) if results else {})


async def aretrieve(
    client: AsyncMaxsimd,
    index_id: UUID | str,
    texts: TextSource,
    query: str,
    options: Mapping[str, Any],
    group_by: str | None = None,
) -> list[Found]:
    """`retrieve` for asyncio. A thread runs a `load` that blocks."""
    load, field = texts
    pages = _Pages(field, options, group_by)
    while (page := pages.next()) is not None:
        pages.add((await client.search(index_id, query, **page)).results)
    results = pages.best()
    if field is not None:
        return _found_in_field(results, field)
    if not results:
        return []
    if inspect.iscoroutinefunction(load):
        return _found(results, await load(_ids(results)))
    return _found(results, await asyncio.to_thread(cast(Load, load), _ids(results)))


def rerank(client: Maxsimd, query: str, texts: Sequence[str], top_n: int) -> list[tuple[int, float]]:
    """Positions and scores of the `top_n` best texts, best first. An empty text cannot be ranked.

    Long lists take several requests. Their scores compare, because query and model are the same.
    """
    scores: list[tuple[int, float]] = []
    lists = _lists(texts)
    while lists:
        part = lists.pop()
        try:
            scores += _scores(part, client._send(_request(query, part)))
        except InvalidRequestError as error:
            lists += _halves(part, error)
    return _best(scores, top_n)


async def arerank(client: AsyncMaxsimd, query: str, texts: Sequence[str], top_n: int) -> list[tuple[int, float]]:
    """`rerank` for asyncio."""
    scores: list[tuple[int, float]] = []
    lists = _lists(texts)
    while lists:
        part = lists.pop()
        try:
            scores += _scores(part, await client._send(_request(query, part)))
        except InvalidRequestError as error:
            lists += _halves(part, error)
    return _best(scores, top_n)


def check_stored(report: ImportReport) -> None:
    """Raises if the service refused documents of an import."""
    if report.failed:
        reasons = "; ".join(f"{failure.doc_id}: {failure.error}" for failure in report.failed[:5])
        raise MaxsimdError(f"{len(report.failed)} documents were refused and are not stored: {reasons}")


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Raises for parameters that a framework's signature lets through."""
    if options:
        raise TypeError(f"unknown parameters: {', '.join(sorted(options))}")


class _Pages:
    """The pages of a search, until they hold documents of enough groups, and the best document of each group."""

    def __init__(self, field: str | None, options: Mapping[str, Any], group_by: str | None) -> None:
        self._groups: int = options["top_k"]
        # The service refuses a number below 1.
        is_grouped = group_by is not None and self._groups > 0
        self._size = max(self._groups, DETAILED_MAX) if is_grouped else self._groups
        passages = {} if field is None else {"passage": {"from": field}}
        # Without components there are no highlights.
        detailed = {"return_components": self._size <= DETAILED_MAX}
        self._search = {**options, **passages, **detailed, "top_k": self._size}
        self._group_by = group_by
        self._left = 1 if group_by is None else PAGES_MAX
        self._offset = 0
        self._best: dict[Any, Result] = {}

    def next(self) -> dict[str, Any] | None:
        """Parameters of the search for the next page, if one is needed."""
        if self._left == 0 or (self._best and len(self._best) >= self._groups):
            return None
        return self._search if self._offset == 0 else {**self._search, "offset": self._offset}

    def add(self, results: Sequence[Result]) -> None:
        """Takes the results of that page."""
        self._left = self._left - 1 if len(results) == self._size else 0
        self._offset += self._size
        for result in results:
            value = None if self._group_by is None else result.metadata.get(self._group_by)
            is_group = isinstance(value, (str, int, float)) and not isinstance(value, bool)
            group = ("value", value) if is_group else ("id", result.doc_id)
            before = self._best.get(group)
            if before is None or result.score > before.score:
                self._best[group] = result

    def best(self) -> list[Result]:
        """The best document of each group, best first."""
        # A later page looks at more candidates, and may have a better one.
        return sorted(self._best.values(), key=lambda result: -result.score)[: self._groups]


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


_List = list[tuple[int, str]]
"""Texts of one request, each with its position."""


def _lists(texts: Sequence[str]) -> list[_List]:
    """The texts of each request that is likely to fit. An empty text is in none."""
    lists: list[_List] = []
    left = 0
    for at, text in enumerate(texts):
        if text == "":
            continue
        counted = text[:RERANKED_CHARACTERS]
        size = len(counted.encode(errors="surrogatepass"))
        if not lists or size > left or len(lists[-1]) == RERANKED_MAX:
            lists.append([])
            left = RERANKED_BYTES
        lists[-1].append((at, counted))
        left -= size
    return lists


def _halves(part: _List, error: InvalidRequestError) -> tuple[_List, _List]:
    """Two requests for one that the service finds too long. Raises an error that has another reason."""
    if len(part) == 1 or all(issue.path != "documents" for issue in error.issues):
        raise error
    middle = len(part) // 2
    return part[:middle], part[middle:]


def _request(query: str, part: _List) -> Call[Reranked]:
    return calls.rerank(query, [text for _, text in part], RERANKED_TOKENS)


def _scores(part: _List, answer: Reranked) -> list[tuple[int, float]]:
    return [(part[result.index][0], result.relevance_score) for result in answer.results]


def _best(scores: Sequence[tuple[int, float]], top_n: int) -> list[tuple[int, float]]:
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))[:top_n]
