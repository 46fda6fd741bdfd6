"""The client that blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import date, datetime
from random import random
from types import TracebackType
from typing import Any
from uuid import UUID

import httpx

from . import calls
from .calls import Answer, Call, Document, Query
from .errors import APIError, ConnectionFailed, ImportStopped
from .imports import Batch, ImportProgress, ImportReport, Item, item_of, refused_items
from .models import (
    Activity,
    ChunkingOptionsInput,
    Deleted,
    DeletedDocuments,
    DocumentCount,
    Facets,
    DocumentFailure,
    Index,
    QueryAnswers,
    Ranked,
    Readiness,
    StoredDocument,
    UpsertResult,
    UsageOfDay,
    UsageSummary,
)
from .retry import CONNECT_SECONDS_MAX, is_refused_for_now, repeat_delay, repeat_seconds_max

OnRetry = Callable[[Exception, float], None]


class Maxsimd:
    """The service, for one API key; safe to share between threads.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._url = calls.checked_url(calls.given("url", url))
        self._retry_seconds_max = retry_seconds_max
        self._on_retry = on_retry
        self._was_connected = False
        # What the rate limit told one request holds for all of the tenant.
        self._paused_until = 0.0
        headers = calls.headers(calls.given("api_key", api_key), user_agent)
        try:
            # The key goes to the address given, nowhere else.
            self._http = httpx.Client(
                headers=headers,
                timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS_MAX)),
                transport=transport,
                mounts=dict.fromkeys(calls.UNPROXIED),
                follow_redirects=False,
            )
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise calls.unusable_proxy(error) from error

    def close(self) -> None:
        """Closes all connections. `with` does this at its end.

        Example:
            client.close()
        """
        self._http.close()

    def __enter__(self) -> Maxsimd:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def create_index(
        self,
        name: str,
        *,
        model: str | None = None,
        metadata_schema: Mapping[str, Any] | None = None,
        chunking: ChunkingOptionsInput | Mapping[str, Any] | None = None,
    ) -> Index:
        """Sent again after 503 (a model that is being loaded), not after a lost answer: the name may be taken by then.

        Example:
            index = client.create_index("handbook", metadata_schema={"kind": "string"})
        """
        return self._send(calls.create_index(name, model, metadata_schema, chunking))

    def list_indexes(self) -> list[Index]:
        """All of them, oldest first.

        Example:
            names = [index.name for index in client.list_indexes()]
        """
        return self._send(calls.list_indexes()).data

    def get_index(self, index_id: UUID | str) -> Index:
        """The index with this id.

        Example:
            index = client.get_index(index_id)
        """
        return self._send(calls.get_index(index_id))

    def rename_index(self, index_id: UUID | str, name: str) -> Index:
        """The name must be free.

        Example:
            client.rename_index(index_id, "handbook of 2026")
        """
        return self._send(calls.rename_index(index_id, name))

    def swap_index_names(self, index_id: UUID | str, other_id: UUID | str) -> Index:
        """Each gets the name of the other, in one step. Sent once: a second one would undo it.

        Example:
            client.swap_index_names(index_id, newer_id)
        """
        return self._send(calls.swap_index_names(index_id, other_id))

    def delete_index(self, index_id: UUID | str) -> Deleted:
        """Sent once: a second one would be refused as not found.

        Example:
            client.delete_index(index_id)
        """
        return self._send(calls.delete_index(index_id))

    def upsert(
        self, index_id: UUID | str, documents: Iterable[Document], *, expires_at: datetime | str | None = None
    ) -> UpsertResult:
        """1 to 50 documents; look at `failed`. `import_documents` takes any number.

        From `expires_at` on the documents are in no answer. Without it they do not expire.

        Example:
            answer = client.upsert(index_id, [{"doc_id": "bee", "text": "Honey bees dance."}])
        """
        return self._send(calls.upsert(index_id, documents, expires_at))

    def list_documents(
        self,
        index_id: UUID | str,
        *,
        where: Mapping[str, Any] | None = None,
        fields: Iterable[str] | None = None,
    ) -> Iterator[StoredDocument]:
        """The documents that `where` matches, or all, by `doc_id`, fetched as they are taken.

        With `fields` their metadata have these fields alone.

        Example:
            for document in client.list_documents(index_id, where={"kind": "insect"}):
                print(document.doc_id, document.metadata)
        """
        fields = None if fields is None else list(fields)
        cursor: str | None = None
        while True:
            page = self._send(calls.list_documents(index_id, where, fields, cursor))
            yield from page.data
            cursor = page.next_cursor
            if cursor is None:
                return

    def get_document(self, index_id: UUID | str, doc_id: str) -> StoredDocument:
        """Metadata and number of chunks; the service keeps no text.

        Example:
            document = client.get_document(index_id, "bee")
        """
        return self._send(calls.get_document(index_id, doc_id))

    def count_documents(self, index_id: UUID | str) -> DocumentCount:
        """Documents and chunks of the index.

        Example:
            count = client.count_documents(index_id).documents
        """
        return self._send(calls.count_documents(index_id))

    def facets(
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
            counts = client.facets(index_id, ["kind"], where={"year": {"gte": 2000}}, limit=10)
        """
        return self._send(calls.facets(index_id, fields, filter, where, limit))

    def update_metadata(self, index_id: UUID | str, doc_id: str, metadata: Mapping[str, Any]) -> StoredDocument:
        """Takes the place of the whole object before; the text is not encoded again.

        Example:
            client.update_metadata(index_id, "bee", {"kind": "insect"})
        """
        return self._send(calls.update_metadata(index_id, doc_id, metadata))

    def set_expiry(
        self, index_id: UUID | str, doc_id: str, expires_at: datetime | str | None
    ) -> StoredDocument:
        """The document is in no answer from then on. None: it does not expire any more.

        Example:
            client.set_expiry(index_id, "bee", "2027-01-01T00:00:00Z")
        """
        return self._send(calls.set_expiry(index_id, doc_id, expires_at))

    def delete_document(self, index_id: UUID | str, doc_id: str) -> Deleted:
        """`deleted` may be false for a document that was there, when the first of two attempts lost its answer.

        Example:
            client.delete_document(index_id, "bee")
        """
        return self._send(calls.delete_document(index_id, doc_id))

    def delete_documents(
        self,
        index_id: UUID | str,
        *,
        filter: Mapping[str, Any] | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> DeletedDocuments:
        """At most `limit` of those that match: ask again while `more`.

        Example:
            while client.delete_documents(index_id, where={"year": {"lt": 2000}}).more:
                pass
        """
        return self._send(calls.delete_documents(index_id, filter, where, limit))

    def search(
        self,
        index_id: UUID | str,
        query: str,
        *,
        top_k: int | None = None,
        candidate_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        where: Mapping[str, Any] | None = None,
        group_by_document: bool | None = None,
        exact: bool | None = None,
        return_components: bool | None = None,
    ) -> Ranked:
        """The best chunks, or with `group_by_document` the best documents, best first.

        Example:
            ranked = client.search(index_id, "how do insects communicate?", top_k=3, where={"kind": "insect"})
            best = ranked.results[0].doc_id
        """
        fields = {
            "top_k": top_k,
            "candidate_k": candidate_k,
            "filter": filter,
            "where": where,
            "group_by_document": group_by_document,
            "exact": exact,
            "return_components": return_components,
        }
        return self._send(calls.search(index_id, {"query": query, **fields}))

    def query(self, index_id: UUID | str, queries: Iterable[Query]) -> QueryAnswers:
        """1 to 32 searches at once, on one snapshot of the index.

        Example:
            answers = client.query(index_id, [{"query": "largest animal"}, {"query": "insects", "top_k": 3}])
        """
        return self._send(calls.query(index_id, queries))

    def score(self, query: str, documents: Iterable[Document], *, return_components: bool | None = None) -> Ranked:
        """Ranks the documents given; nothing is stored.

        Example:
            ranked = client.score("largest animal", [{"doc_id": "a", "text": "An elephant is big."}])
        """
        return self._send(calls.score(query, documents, return_components))

    def usage(self) -> UsageSummary:
        """Usage, limits and what remains of this month.

        Example:
            remaining = client.usage().remaining.documents
        """
        return self._send(calls.usage())

    def usage_days(self, first: date | None = None, last: date | None = None) -> Sequence[UsageOfDay]:
        """Days in UTC, both included; this month by default. Days without usage are left out.

        Example:
            searches = sum(day.searches for day in client.usage_days())
        """
        return (self._send(calls.usage_days(first, last))).data

    def activity(self) -> Activity:
        """The searches of the last 60 minutes, by index and minute, as the node that answers has counted them.

        Example:
            searches = sum(index.hour.searches for index in (client.activity()).data)
        """
        return self._send(calls.activity())

    def readiness(self) -> Readiness:
        """Raises a `ServiceUnavailableError` while the service is not ready; sent once.

        Example:
            checks = client.readiness().checks
        """
        return self._send(calls.readiness())

    def import_documents(
        self,
        index_id: UUID | str,
        documents: Iterable[Document],
        *,
        concurrency: int = 2,
        on_progress: Callable[[ImportProgress], None] | None = None,
    ) -> ImportReport:
        """Any number of documents, in batches, `concurrency` at once.

        Documents that are refused alone are reported, and those beside them go on. A `doc_id` that comes again waits for
        the one before it, so that the last one stays. Raises an `ImportStopped` that holds the report so far.

        Example:
            report = client.import_documents(index_id, [{"doc_id": "bee", "text": "Honey bees dance."}])
            print(report.documents, report.failed)
        """
        return _Import(self, index_id, concurrency, on_progress).run(documents)

    def _send(
        self,
        call: Call[Answer],
        stop: threading.Event | None = None,
        on_retry: OnRetry | None = None,
    ) -> Answer:
        started = time.monotonic()
        attempts = 0
        while True:
            while (pause := self._paused_until - time.monotonic()) > 0:
                _wait(pause, stop)
            attempts += 1
            attempted = time.monotonic()
            try:
                return self._attempt(call)
            except Exception as error:
                delay = repeat_delay(
                    error, attempts=attempts, is_safe=call.is_safe, is_unique=call.is_unique, random=random
                )
                waits = call.is_patient and is_refused_for_now(error)
                now = time.monotonic()
                bound = self._retry_seconds_max
                if bound is None:
                    bound = repeat_seconds_max(was_connected=self._was_connected, attempt_seconds=now - attempted)
                if delay is None or (not waits and now - started + delay > bound):
                    raise
                for listener in (self._on_retry, on_retry):
                    if listener is not None:
                        listener(error, delay)
                if isinstance(error, APIError) and error.code == "rate_limit_exceeded":
                    self._paused_until = max(self._paused_until, time.monotonic() + delay)
                else:
                    _wait(delay, stop)

    def _attempt(self, call: Call[Answer]) -> Answer:
        content_type = {} if call.body is None else {"content-type": "application/json"}
        try:
            response = self._http.request(
                call.method, f"{self._url}{call.path}", content=call.body, headers=content_type
            )
        except (httpx.RequestError, httpx.InvalidURL) as error:
            failure = calls.failed(self._url, error)
            self._was_connected |= isinstance(failure, ConnectionFailed) and failure.maybe_received
            raise failure from error
        self._was_connected = True
        return calls.read_answer(call, response)


class _Stopped(Exception):
    """Another batch failed."""


def _wait(seconds: float, stop: threading.Event | None) -> None:
    if stop is None:
        time.sleep(seconds)
    elif stop.wait(seconds):
        raise _Stopped


class _Import:
    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        concurrency: int,
        on_progress: Callable[[ImportProgress], None] | None,
    ) -> None:
        self._client = client
        self._index_id = index_id
        self._concurrency = max(1, concurrency)
        self._on_progress = on_progress
        self._report = ImportReport()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._in_flight: dict[Future[None], Batch] = {}

    def run(self, documents: Iterable[Document]) -> ImportReport:
        with ThreadPoolExecutor(self._concurrency) as executor:
            try:
                batch = Batch()
                for document in documents:
                    item = item_of(document)
                    if not batch.fits(item):
                        self._start(executor, batch)
                        batch = Batch()
                    if any(item.doc_id in other.items for other in self._in_flight.values()):
                        self._settle(0)
                    batch.add(item)
                if batch.items:
                    self._start(executor, batch)
                self._settle(0)
            except Exception as error:
                raise ImportStopped(error, self._report) from error
            finally:
                self._stop.set()
        return self._report

    def _start(self, executor: ThreadPoolExecutor, batch: Batch) -> None:
        self._settle(self._concurrency - 1)
        self._in_flight[executor.submit(self._upsert, list(batch.items.values()))] = batch

    def _settle(self, in_flight_max: int) -> None:
        """Waits until no more than so many are in flight; raises what one of them raised."""
        while len(self._in_flight) > in_flight_max:
            done, _ = wait(self._in_flight, return_when=FIRST_COMPLETED)
            for future in done:
                del self._in_flight[future]
                future.result()

    def _upsert(self, items: list[Item]) -> None:
        """Sends the items until none is left that the service refuses alone."""
        failures: list[DocumentFailure] = []
        while items:
            call = calls.upsert_json(self._index_id, [item.json for item in items], items[0].expires_at, is_patient=True)
            try:
                answer = self._client._send(call, self._stop, self._slow_down)
            except APIError as error:
                refused = refused_items(error, items)
                if not refused:
                    raise
                failures.extend(refused.values())
                items = [item for item in items if item.doc_id not in refused]
            else:
                with self._lock:
                    self._report.add(answer)
                break
        with self._lock:
            self._report.failed.extend(failures)
            if self._on_progress is not None:
                self._on_progress(self._report.progress)

    def _slow_down(self, error: Exception, _delay: float) -> None:
        if isinstance(error, APIError) and error.code == "concurrency_limit_exceeded":
            with self._lock:
                self._concurrency = max(1, self._concurrency - 1)
