"""An import by threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING
from uuid import UUID

from . import calls
from .calls import Document
from .errors import APIError, ImportStopped
from .imports import Batch, ImportProgress, ImportReport, Item, item_of, refused_items
from .models import DocumentFailure

if TYPE_CHECKING:
    from .synchronous import Maxsimd


class _Stopped(Exception):
    """Another batch failed."""


class Import:
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
                answer = self._client._send(call, self._slow_down, self._wait)
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

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _Stopped
