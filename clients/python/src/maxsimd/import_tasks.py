"""An import by tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
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
    from .asynchronous import AsyncMaxsimd


class Import:
    def __init__(
        self,
        client: AsyncMaxsimd,
        index_id: UUID | str,
        concurrency: int,
        on_progress: Callable[[ImportProgress], None] | None,
        intake: Intake,
    ) -> None:
        self._intake = intake
        self._client = client
        self._index_id = index_id
        self._on_progress = on_progress
        self._batches = Batches(concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._failure: Exception | None = None

    async def run(self, documents: Iterable[Document] | AsyncIterable[Document]) -> ImportReport:
        try:
            self._index_id = await self._client._id_of(self._index_id, is_patient=True)
            batch = Batch()
            async for document in _each(documents):
                for item in self._intake.items_of(document):
                    if not batch.fits(item, self._batches.pace.documents):
                        await self._start(batch)
                        batch = Batch()
                    if self._batches.holds(item.doc_id):
                        await self._wait_until(lambda: self._batches.is_idle)
                    batch.add(item)
            if batch:
                await self._start(batch)
            await self._wait_until(lambda: self._batches.is_idle)
            await self._delete_stale_parts()
        except Exception as error:
            raise ImportStopped(error, self._batches.report) from error
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        return self._batches.report

    async def _delete_stale_parts(self) -> None:
        stale = self._intake.parts_to_clean(self._batches.report)
        if stale is None:
            return
        listed = self._client.list_documents(self._index_id, fields=PART_FIELDS)
        for doc_id in stale.among([document async for document in listed if stale.concerns(document)]):
            deleted = await self._client.delete_document(self._index_id, doc_id)
            self._batches.report.deleted += int(deleted.deleted)

    async def _start(self, batch: Batch) -> None:
        await self._wait_until(lambda: self._batches.has_room)
        self._batches.put(batch)
        self._send_waiting()

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        """Raises what ended a batch meanwhile."""
        while self._failure is None and not is_so():
            self._ended.clear()
            await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def _send_waiting(self) -> None:
        while (batch := self._batches.next()) is not None:
            task = asyncio.create_task(self._fly(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _fly(self, batch: Batch) -> None:
        try:
            try:
                self._batches.stored(batch, await self._upsert(batch))
            except LateError as error:
                self._batches.late(batch, error)
            if self._on_progress is not None:
                self._on_progress(self._batches.report.progress)
            self._send_waiting()
        except Exception as error:
            self._failure = self._failure or error
        self._ended.set()

    async def _upsert(self, batch: Batch) -> UpsertResult | None:
        """Sends the documents until none is left that the service refuses alone."""
        while batch.items:
            items = list(batch.items.values())
            json = [item.json for item in items]
            call = calls.upsert_of_import(self._index_id, json, items[0].expires_at, self._client._late_after)
            try:
                return await self._client._send(call, self._slow_down)
            except APIError as error:
                refused = refused_items(error, items)
                if not refused:
                    raise
                self._batches.refused(batch, refused)
        return None

    def _slow_down(self, error: Exception, _delay: float) -> None:
        if isinstance(error, APIError) and error.code == "concurrency_limit_exceeded":
            self._batches.pace.refused()


async def _each(documents: Iterable[Document] | AsyncIterable[Document]) -> AsyncIterator[Document]:
    if isinstance(documents, AsyncIterable):
        async for document in documents:
            yield document
    else:
        for document in documents:
            yield document
