"""An import by threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID

from . import calls
from .calls import Document
from .cut import PART_FIELDS
from .errors import APIError, ImportStopped
from .imports import Batch, Batches, ImportProgress, ImportReport, Intake, refused_items
from .models import UpsertResult
from .retry import LateError

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
        intake: Intake,
    ) -> None:
        self._intake = intake
        self._client = client
        self._index_id = index_id
        self._on_progress = on_progress
        self._executor = ThreadPoolExecutor(max(1, concurrency))
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        # All that follows belongs to whichever thread has the lock. It notifies of each batch that ended.
        self._ended = threading.Condition()
        self._batches = Batches(concurrency)

    def run(self, documents: Iterable[Document]) -> ImportReport:
        with self._executor:
            try:
                self._index_id = self._client._id_of(self._index_id, is_patient=True)
                batch = Batch()
                for document in documents:
                    for item in self._intake.items_of(document):
                        if not batch.fits(item, self._batches.pace.documents):
                            self._start(batch)
                            batch = Batch()
                        with self._ended:
                            if self._batches.holds(item.doc_id):
                                self._wait_until(lambda: self._batches.is_idle)
                        batch.add(item)
                if batch:
                    self._start(batch)
                with self._ended:
                    self._wait_until(lambda: self._batches.is_idle)
                self._delete_stale_parts()
            except Exception as error:
                raise ImportStopped(error, self._batches.report) from error
            finally:
                with self._ended:
                    self._stop.set()
        return self._batches.report

    def _delete_stale_parts(self) -> None:
        stale = self._intake.parts_to_clean(self._batches.report)
        if stale is None:
            return
        listed = self._client.list_documents(self._index_id, fields=PART_FIELDS)
        for doc_id in stale.among([document for document in listed if stale.concerns(document)]):
            deleted = self._client.delete_document(self._index_id, doc_id)
            self._batches.report.deleted += int(deleted.deleted)

    def _start(self, batch: Batch) -> None:
        with self._ended:
            self._wait_until(lambda: self._batches.has_room)
            self._batches.put(batch)
            self._send_waiting()

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        """Raises what ended a batch meanwhile."""
        self._ended.wait_for(lambda: self._failure is not None or is_so())
        if self._failure is not None:
            raise self._failure

    def _send_waiting(self) -> None:
        while not self._stop.is_set() and (batch := self._batches.next()) is not None:
            self._executor.submit(self._fly, batch)

    def _fly(self, batch: Batch) -> None:
        answer: UpsertResult | None = None
        failure: BaseException | None = None
        try:
            answer = self._upsert(batch)
        except BaseException as error:
            failure = error
        with self._ended:
            try:
                if isinstance(failure, LateError):
                    self._batches.late(batch, failure)
                elif failure is not None:
                    raise failure
                else:
                    self._batches.stored(batch, answer)
                if self._on_progress is not None:
                    self._on_progress(self._batches.report.progress)
                self._send_waiting()
            except BaseException as error:
                self._failure = self._failure or error
            self._ended.notify_all()

    def _upsert(self, batch: Batch) -> UpsertResult | None:
        """Sends the documents until none is left that the service refuses alone."""
        while batch.items:
            items = list(batch.items.values())
            json = [item.json for item in items]
            call = calls.upsert_of_import(self._index_id, json, items[0].expires_at, self._client._late_after)
            try:
                return self._client._send(call, self._slow_down, self._wait)
            except APIError as error:
                refused = refused_items(error, items)
                if not refused:
                    raise
                with self._ended:
                    self._batches.refused(batch, refused)
        return None

    def _slow_down(self, error: Exception, _delay: float) -> None:
        if isinstance(error, APIError) and error.code == "concurrency_limit_exceeded":
            with self._ended:
                self._batches.pace.refused()

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _Stopped
