"""An import by tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from . import calls
from .calls import Document
from .errors import APIError, ImportStopped
from .imports import Batch, ImportProgress, ImportReport, Item, item_of, refused_items

if TYPE_CHECKING:
    from .asynchronous import AsyncMaxsimd


class Import:
    def __init__(
        self,
        client: AsyncMaxsimd,
        index_id: UUID | str,
        concurrency: int,
        on_progress: Callable[[ImportProgress], None] | None,
    ) -> None:
        self._client = client
        self._index_id = index_id
        self._concurrency = max(1, concurrency)
        self._on_progress = on_progress
        self._report = ImportReport()
        self._in_flight: dict[asyncio.Task[None], Batch] = {}

    async def run(self, documents: Iterable[Document] | AsyncIterable[Document]) -> ImportReport:
        try:
            batch = Batch()
            async for document in _each(documents):
                item = item_of(document)
                if not batch.fits(item):
                    await self._start(batch)
                    batch = Batch()
                if any(item.doc_id in other.items for other in self._in_flight.values()):
                    await self._settle(0)
                batch.add(item)
            if batch.items:
                await self._start(batch)
            await self._settle(0)
        except Exception as error:
            raise ImportStopped(error, self._report) from error
        finally:
            for task in self._in_flight:
                task.cancel()
            await asyncio.gather(*self._in_flight, return_exceptions=True)
        return self._report

    async def _start(self, batch: Batch) -> None:
        await self._settle(self._concurrency - 1)
        self._in_flight[asyncio.create_task(self._upsert(list(batch.items.values())))] = batch

    async def _settle(self, in_flight_max: int) -> None:
        """Waits until no more than so many are in flight; raises what one of them raised."""
        while len(self._in_flight) > in_flight_max:
            done, _ = await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del self._in_flight[task]
                task.result()

    async def _upsert(self, items: list[Item]) -> None:
        """Sends the items until none is left that the service refuses alone."""
        while items:
            call = calls.upsert_json(self._index_id, [item.json for item in items], items[0].expires_at, is_patient=True)
            try:
                self._report.add(await self._client._send(call, self._slow_down))
                break
            except APIError as error:
                refused = refused_items(error, items)
                if not refused:
                    raise
                self._report.failed.extend(refused.values())
                items = [item for item in items if item.doc_id not in refused]
        if self._on_progress is not None:
            self._on_progress(self._report.progress)

    def _slow_down(self, error: Exception, _delay: float) -> None:
        if isinstance(error, APIError) and error.code == "concurrency_limit_exceeded":
            self._concurrency = max(1, self._concurrency - 1)


async def _each(documents: Iterable[Document] | AsyncIterable[Document]) -> AsyncIterator[Document]:
    if isinstance(documents, AsyncIterable):
        async for document in documents:
            yield document
    else:
        for document in documents:
            yield document
