"""The client for asyncio. `hatch_build.py` makes its twin that blocks of this file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from random import random
from types import TracebackType
from typing import Any, Literal
from uuid import UUID

import httpx

from . import calls
from .calls import Answer, Call, Document, Query
from .errors import APIError, ConnectionFailed
from .import_tasks import Import
from .imports import ImportProgress, ImportReport, Intake
from .models import (
    Activity,
    ChunkingOptionsInput,
    Deleted,
    DeletedDocuments,
    DocumentCount,
    Facets,
    Index,
    QueryAnswers,
    Ranked,
    Readiness,
    StoredDocument,
    UpsertResult,
    UsageOfDay,
    UsageSummary,
)
from .proxies import proxy_for
from .retry import (
    CONNECT_SECONDS_MAX,
    UPSERT_DEADLINE,
    LateError,
    OnRetry,
    is_refused_for_now,
    maybe_slow,
    repeat_delay,
    repeat_seconds_max,
)


class AsyncMaxsimd:
    """The service, for one API key, in one event loop; cancelling a call ends it.

    An index is given by its id, or as `name:` and its name, such as "name:handbook": each request finds the index that has
    the name then. An import, and a list of documents, stay with the index that they began with.

    Without `url` and `api_key` it reads MAXSIMD_URL and MAXSIMD_API_KEY of the environment.

    Requests that are safe to repeat are repeated while the service is unavailable (`retry.py`). Methods raise an
    `APIError` or a `ConnectionFailed`. `timeout` bounds how long an attempt waits for the next byte; the default is above
    every deadline of the service. `retry_seconds_max` bounds all attempts of a request together; 0 = one attempt. By
    default it is 120, and 5 as long as this client was never connected. `on_retry` hears of each attempt that failed and is
    made again. The proxies that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name are used, though not for this machine.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 150.0,
        retry_seconds_max: float | None = None,
        on_retry: OnRetry | None = None,
        user_agent: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = calls.checked_url(calls.given("url", url))
        self._retry_seconds_max = retry_seconds_max
        # Half of the time that an upsert can take.
        self._late_after = min(UPSERT_DEADLINE, timeout) / 2
        self._on_retry = on_retry
        self._was_connected = False
        # What the rate limit told one request holds for all of the tenant.
        self._paused_until = 0.0
        headers = calls.headers(calls.given("api_key", api_key), user_agent)
        try:
            # The key goes to the address given, nowhere else.
            self._http = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS_MAX)),
                transport=transport or httpx.AsyncHTTPTransport(proxy=proxy_for(self._url)),
                follow_redirects=False,
            )
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise calls.unusable_proxy(error) from error

    async def close(self) -> None:
        """Closes all connections. `async with` does this at its end.

        Example:
            await client.close()
        """
        await self._http.aclose()

    async def __aenter__(self) -> AsyncMaxsimd:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def create_index(
        self,
        name: str,
        *,
        model: str | None = None,
        metadata_schema: Mapping[str, Any] | None = None,
        chunking: ChunkingOptionsInput | Mapping[str, Any] | None = None,
        match_fields: Sequence[str] | None = None,
        if_exists: Literal["return"] | None = None,
    ) -> Index:
        """Sent again after 503 (a model that is being loaded), not after a lost answer: the name may be taken by then.

        With `if_exists="return"` an index that has the name already is the answer, if it has the fields that are given,
        and the call is sent again after a lost answer.

        Example:
            index = await client.create_index("handbook", metadata_schema={"kind": "string"})
        """
        call = calls.create_index(name, model, metadata_schema, chunking, match_fields, if_exists)
        return await self._send(call)

    async def list_indexes(self) -> list[Index]:
        """All of them, oldest first.

        Example:
            names = [index.name for index in await client.list_indexes()]
        """
        return (await self._send(calls.list_indexes())).data

    async def get_index(self, index_id: UUID | str) -> Index:
        """The index with this id or name.

        Example:
            index = await client.get_index("name:handbook")
        """
        return await self._send(calls.get_index(index_id))

    async def rename_index(self, index_id: UUID | str, name: str) -> Index:
        """The name must be free. By its old name an index is renamed once: a second request would not find it.

        Example:
            await client.rename_index(index_id, "handbook of 2026")
        """
        return await self._send(calls.rename_index(index_id, name))

    async def swap_index_names(self, index_id: UUID | str, other_id: UUID | str) -> Index:
        """Each gets the name of the other, in one step. Sent once: a second one would undo it.

        Example:
            await client.swap_index_names(index_id, newer_id)
        """
        return await self._send(calls.swap_index_names(index_id, other_id))

    async def set_match_fields(self, index_id: UUID | str, match_fields: Sequence[str]) -> Index:
        """The metadata fields that words of a query match, in place of those of before; none for an empty list.

        Example:
            await client.set_match_fields(index_id, ["part_number"])
        """
        return await self._send(calls.set_match_fields(index_id, match_fields))

    async def delete_index(self, index_id: UUID | str) -> Deleted:
        """Sent once: a second one would be refused as not found.

        Example:
            await client.delete_index(index_id)
        """
        return await self._send(calls.delete_index(index_id))

    async def upsert(
        self, index_id: UUID | str, documents: Iterable[Document], *, expires_at: datetime | str | None = None
    ) -> UpsertResult:
        """1 to 50 documents; look at `failed`. `import_documents` takes any number.

        From `expires_at` on the documents are in no answer. Without it they do not expire.

        Example:
            answer = await client.upsert(index_id, [{"doc_id": "bee", "text": "Honey bees dance."}])
        """
        return await self._send(calls.upsert(index_id, documents, expires_at))

    async def list_documents(
        self,
        index_id: UUID | str,
        *,
        where: Mapping[str, Any] | None = None,
        fields: Iterable[str] | None = None,
    ) -> AsyncIterator[StoredDocument]:
        """The documents that `where` matches, or all, by `doc_id`, fetched as they are taken.

        With `fields` their metadata have these fields alone.

        Example:
            async for document in client.list_documents(index_id, where={"kind": "insect"}):
                print(document.doc_id, document.metadata)
        """
        fields = None if fields is None else list(fields)
        index_id = await self._id_of(index_id)
        cursor: str | None = None
        while True:
            page = await self._send(calls.list_documents(index_id, where, fields, cursor))
            for document in page.data:
                yield document
            cursor = page.next_cursor
            if cursor is None:
                return

    async def get_document(self, index_id: UUID | str, doc_id: str) -> StoredDocument:
        """Metadata and number of chunks; the service keeps no text.

        Example:
            document = await client.get_document(index_id, "bee")
        """
        return await self._send(calls.get_document(index_id, doc_id))

    async def count_documents(self, index_id: UUID | str) -> DocumentCount:
        """Documents and chunks of the index.

        Example:
            count = (await client.count_documents(index_id)).documents
        """
        return await self._send(calls.count_documents(index_id))

    async def facets(
        self,
        index_id: UUID | str,
        fields: Iterable[str],
        *,
        filter: Mapping[str, Any] | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Facets:
        """Counts the documents that match by the values of metadata fields, the most frequent first.

        Example:
            counts = await client.facets(index_id, ["kind"], where={"year": {"gte": 2000}}, limit=10)
        """
        return await self._send(calls.facets(index_id, fields, filter, where, limit))

    async def update_metadata(self, index_id: UUID | str, doc_id: str, metadata: Mapping[str, Any]) -> StoredDocument:
        """Takes the place of the whole object before; the text is not encoded again.

        Example:
            await client.update_metadata(index_id, "bee", {"kind": "insect"})
        """
        return await self._send(calls.update_metadata(index_id, doc_id, metadata))

    async def merge_metadata(self, index_id: UUID | str, doc_id: str, metadata: Mapping[str, Any]) -> StoredDocument:
        """Merges fields into the stored metadata (RFC 7396): None removes a field, a mapping merges into the stored one.

        Merges at once all count. The text is not encoded again.

        Example:
            await client.merge_metadata(index_id, "bee", {"checked": True, "draft": None})
        """
        return await self._send(calls.merge_metadata(index_id, doc_id, metadata))

    async def set_expiry(
        self, index_id: UUID | str, doc_id: str, expires_at: datetime | str | None
    ) -> StoredDocument:
        """The document is in no answer from then on. None: it does not expire any more.

        Example:
            await client.set_expiry(index_id, "bee", "2027-01-01T00:00:00Z")
        """
        return await self._send(calls.set_expiry(index_id, doc_id, expires_at))

    async def delete_document(self, index_id: UUID | str, doc_id: str) -> Deleted:
        """`deleted` may be false for a document that was there, when the first of two attempts lost its answer.

        Example:
            await client.delete_document(index_id, "bee")
        """
        return await self._send(calls.delete_document(index_id, doc_id))

    async def delete_documents(
        self,
        index_id: UUID | str,
        *,
        filter: Mapping[str, Any] | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = None,
        dry_run: bool | None = None,
    ) -> DeletedDocuments:
        """At most `limit` of those that match: ask again while `more`. With `dry_run` they are counted in `matching`, and stay.

        Example:
            old = {"year": {"lt": 2000}}
            print((await client.delete_documents(index_id, where=old, dry_run=True)).matching)
            while (await client.delete_documents(index_id, where=old)).more:
                pass
        """
        return await self._send(calls.delete_documents(index_id, filter, where, limit, dry_run))

    async def search(
        self,
        index_id: UUID | str,
        query: str,
        *,
        top_k: int | None = None,
        offset: int | None = None,
        candidate_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        where: Mapping[str, Any] | None = None,
        group_by_document: bool | None = None,
        exact: bool | None = None,
        return_components: bool | None = None,
        min_score: float | None = None,
        passage: Mapping[str, Any] | None = None,
        match: Mapping[str, Any] | Literal[False] | None = None,
        fields: Sequence[str] | None = None,
    ) -> Ranked:
        """The best chunks, or with `group_by_document` the best documents, best first.

        `offset` leaves out so many of the best: the next page. With `passage={"from": "text"}` each chunk has its
        `passage`, from the metadata field that holds the text. With `fields` the results have these metadata fields alone.
        Words of the query that match a value of the index's `match_fields` raise its documents; `match={"weight": 1}` raises
        them more, and `match=False` not.

        Example:
            ranked = await client.search(index_id, "how do insects communicate?", top_k=3, where={"kind": "insect"})
            best = ranked.results[0].doc_id
        """
        options = {
            "top_k": top_k,
            "offset": offset,
            "candidate_k": candidate_k,
            "filter": filter,
            "where": where,
            "group_by_document": group_by_document,
            "exact": exact,
            "return_components": return_components,
            "min_score": min_score,
            "passage": passage,
            "match": match,
            "fields": fields,
        }
        return await self._send(calls.search(index_id, {"query": query, **options}))

    async def query(self, index_id: UUID | str, queries: Iterable[Query]) -> QueryAnswers:
        """1 to 32 searches at once, on one snapshot of the index.

        Example:
            answers = await client.query(index_id, [{"query": "largest animal"}, {"query": "insects", "top_k": 3}])
        """
        return await self._send(calls.query(index_id, queries))

    async def score(
        self,
        query: str,
        documents: Iterable[Document],
        *,
        return_components: bool | None = None,
        min_score: float | None = None,
        passage: Mapping[str, Any] | None = None,
    ) -> Ranked:
        """Ranks the documents given; nothing is stored. With `passage={}` each result has its `passage` of the text.

        Example:
            ranked = await client.score("largest animal", [{"doc_id": "a", "text": "An elephant is big."}])
        """
        options = {"return_components": return_components, "min_score": min_score, "passage": passage}
        return await self._send(calls.score(query, documents, options))

    async def usage(self) -> UsageSummary:
        """Usage, limits and what remains of this month.

        Example:
            remaining = (await client.usage()).remaining.documents
        """
        return await self._send(calls.usage())

    async def usage_days(self, first: date | None = None, last: date | None = None) -> Sequence[UsageOfDay]:
        """Days in UTC, both included; this month by default. Days without usage are left out.

        Example:
            searches = sum(day.searches for day in await client.usage_days())
        """
        return (await self._send(calls.usage_days(first, last))).data

    async def activity(self) -> Activity:
        """The searches of the last 60 minutes, by index and minute, as the node that answers has counted them.

        Example:
            searches = sum(index.hour.searches for index in (await client.activity()).data)
        """
        return await self._send(calls.activity())

    async def readiness(self) -> Readiness:
        """Raises a `ServiceUnavailableError` while the service is not ready; sent once.

        Example:
            checks = (await client.readiness()).checks
        """
        return await self._send(calls.readiness())

    async def import_documents(
        self,
        index_id: UUID | str,
        documents: Iterable[Document] | AsyncIterable[Document],
        *,
        concurrency: int = 2,
        on_progress: Callable[[ImportProgress], None] | None = None,
        keep_text: str | None = None,
        identifiers: str | None = None,
        cut: bool | int = False,
    ) -> ImportReport:
        """Any number of documents, in batches, `concurrency` at once.

        `keep_text` names the metadata field that keeps the text of each document, so that searches show passages. Metadata
        have at most 16 KiB; a document with more is refused, or cut with `cut`.

        `identifiers` names the metadata field that gets the words of each text that look like identifiers: 3 to 64 characters
        with a digit, an underscore, an inner dot or camelCase, at most 64 a document. Create the index with this field in
        `match_fields`, and searches find these words as a whole. They are then stored, which the text is not. Words for which
        the 16 KiB of metadata have no room are left out.

        `cut` makes documents `ID#1`, `ID#2` and so on of a longer one, at headings of Markdown, paragraphs and sentences, with
        `part_of`, `part` and `headings` in their metadata. `True` cuts at what a document may hold: 16 KiB of metadata with
        `keep_text`, and 100 KiB of text. A number is bytes of text, at least 1,024. At the end, parts of earlier imports of
        these documents that are no longer there are deleted; for this all documents of the index are listed.

        Documents that are refused alone, or that no request can carry, are reported, and those beside them go on. A `doc_id` that comes again waits for
        the one before it, so that the last one stays. A service that is too slow gets fewer and smaller batches (`pace.py`).
        Raises an `ImportStopped` that holds the report so far.

        Example:
            report = await client.import_documents(index_id, [{"doc_id": "bee", "text": "Honey bees dance."}])
            print(report.documents, report.failed)
        """
        intake = Intake(keep_text, identifiers, cut)
        return await Import(self, index_id, concurrency, on_progress, intake).run(documents)

    async def _id_of(self, index_id: UUID | str, *, is_patient: bool = False) -> UUID | str:
        """For work of several requests, between which a name may go to another index."""
        if not calls.is_name(index_id):
            return index_id
        return (await self._send(replace(calls.get_index(index_id), is_patient=is_patient))).id

    async def _send(
        self,
        call: Call[Answer],
        on_retry: OnRetry | None = None,
        wait: Callable[[float], Awaitable[None]] | None = None,
    ) -> Answer:
        sleep: Callable[[float], Awaitable[None]] = wait or asyncio.sleep
        started = time.monotonic()
        attempts = 0
        while True:
            while (pause := self._paused_until - time.monotonic()) > 0:
                await sleep(pause)
            attempts += 1
            attempted = time.monotonic()
            try:
                return await self._attempt(call)
            except Exception as error:
                delay = repeat_delay(
                    error, attempts=attempts, is_safe=call.is_safe, is_unique=call.is_unique, random=random
                )
                waits = call.is_patient and is_refused_for_now(error)
                now = time.monotonic()
                is_late = call.late_after is not None and now - attempted > call.late_after and maybe_slow(error)
                if is_late:
                    # The service works on the request, so the bounds begin anew.
                    started = now
                bound = self._retry_seconds_max
                if bound is None:
                    bound = repeat_seconds_max(was_connected=self._was_connected, attempt_seconds=now - attempted)
                left = bound - (now - started)
                if delay is not None and call.is_patient and not waits and left > 0:
                    # Other batches of an import end meanwhile, so it tries once more at the bound.
                    delay = min(delay, left)
                if delay is None or (not waits and delay > left):
                    raise
                for listener in (self._on_retry, on_retry):
                    if listener is not None:
                        listener(error, delay)
                if isinstance(error, APIError) and error.code == "rate_limit_exceeded":
                    self._paused_until = max(self._paused_until, time.monotonic() + delay)
                else:
                    await sleep(delay)
                if is_late:
                    raise LateError(error) from error

    async def _attempt(self, call: Call[Answer]) -> Answer:
        content_type = {} if call.body is None else {"content-type": "application/json"}
        try:
            response = await self._http.request(
                call.method, f"{self._url}{call.path}", content=call.body, headers=content_type
            )
        except (httpx.RequestError, httpx.InvalidURL) as error:
            failure = calls.failed(self._url, error)
            self._was_connected |= isinstance(failure, ConnectionFailed) and failure.maybe_received
            raise failure from error
        self._was_connected = True
        return calls.read_answer(call, response)
