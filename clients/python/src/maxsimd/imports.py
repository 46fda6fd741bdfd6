"""Batches of an import, without any input or output: at most 50 documents and 5 MiB a request.

`Pace` says how many batches are in flight, and how many documents each has. A batch that comes late is sent again, perhaps
in parts, when its turn comes: the first in the input goes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .added import AddedFields, add_fields, assert_free
from .calls import Document, document_json, plain, time_text
from .cut import Cutting, StaleParts, cut_document
from .errors import APIError, MaxsimdError
from .models import DocumentFailure, UpsertResult
from .pace import Pace
from .retry import LateError

BODY_BYTES_MAX = 5 * 1024 * 1024
_ENVELOPE_BYTES = len(b'{"documents":[]}')


@dataclass(frozen=True)
class ImportProgress:
    documents: int
    """Stored."""
    chunks: int
    failed: int
    """Refused."""


@dataclass
class ImportReport:
    documents: int = 0
    chunks: int = 0
    failed: list[DocumentFailure] = field(default_factory=list)
    deleted: int = 0
    """Documents that were deleted because `cut` left them behind."""
    identifiers_left_out: int = 0
    """Identifiers for which the metadata of their documents had no room."""

    def add(self, answer: UpsertResult) -> None:
        self.documents += answer.upserted_documents
        self.chunks += answer.upserted_chunks
        self.failed.extend(answer.failed)

    @property
    def progress(self) -> ImportProgress:
        return ImportProgress(self.documents, self.chunks, len(self.failed))


@dataclass(frozen=True)
class Item:
    doc_id: str
    json: bytes
    expires_at: str | None
    """No part of the document in a request."""
    identifiers_left_out: int = 0


class Intake:
    """Makes items of the documents of an import.

    `keep_text` is the metadata field that keeps the text, and `identifiers` the one that gets the words that look like
    identifiers. With `cut` a long document becomes several.
    """

    def __init__(self, keep_text: str | None = None, identifiers: str | None = None, cut: bool | int = False) -> None:
        self._added = AddedFields(keep_text, identifiers)
        self._cutting = Cutting.of(cut, self._added)
        self.stale_parts = None if self._cutting is None else StaleParts()
        """None: nothing is cut, so nothing is left behind."""

    def parts_to_clean(self, report: ImportReport) -> StaleParts | None:
        """At the end of an import: what knows the parts of the documents that are wholly stored."""
        if self.stale_parts is not None:
            for failure in report.failed:
                self.stale_parts.drop(failure.doc_id)
        return self.stale_parts

    def items_of(self, document: Document) -> list[Item | DocumentFailure]:
        """A failure says why no request can carry the document."""
        given = plain(document)
        # The service refuses a document without an id, as one of its batch.
        doc_id = str(given.get("doc_id", ""))
        try:
            parts = [given] if self._cutting is None else cut_document(given, self._cutting)
        except MaxsimdError as error:
            return [_failure(doc_id, str(error))]
        if self.stale_parts is not None:
            self.stale_parts.add(doc_id, len(parts))
        return [self._item_of(part) for part in parts]

    def _item_of(self, document: Mapping[str, Any]) -> Item | DocumentFailure:
        doc_id, expiry = str(document.get("doc_id", "")), document.get("expires_at")
        stored = {name: field for name, field in document.items() if name != "expires_at"}
        try:
            assert_free(stored, self._added.names)
            left_out = add_fields(stored, self._added)
            return Item(doc_id, document_json(stored), None if expiry is None else time_text(expiry), left_out)
        except MaxsimdError as error:
            return _failure(doc_id, str(error))


class Batch:
    """Documents of one request, which grows until the next one does not fit."""

    def __init__(self, items: Iterable[Item] = (), *, lates: int = 0) -> None:
        self.items: dict[str, Item] = {}
        self.failed: list[DocumentFailure] = []
        """Documents among these that no request can carry."""
        self.beside = 0
        """The most requests that were in flight at once with this one."""
        self.lates = lates
        self._bytes = _ENVELOPE_BYTES
        for item in items:
            self.add(item)

    def __bool__(self) -> bool:
        return bool(self.items or self.failed)

    def fits(self, item: Item | DocumentFailure, documents_max: int) -> bool:
        if len(self.items) + len(self.failed) >= documents_max:
            return False
        if isinstance(item, DocumentFailure) or not self.items:
            return True
        return (
            item.doc_id not in self.items
            and all(other.expires_at == item.expires_at for other in self.items.values())
            and self._bytes + len(item.json) + 1 <= BODY_BYTES_MAX
        )

    def add(self, item: Item | DocumentFailure) -> None:
        if isinstance(item, DocumentFailure):
            self.failed.append(item)
            return
        self.items[item.doc_id] = item
        self._bytes += len(item.json) + 1

    def cut(self, documents: int) -> list[Batch]:
        """The batch itself, or parts of it with so many documents. A document alone begins anew with its attempts."""
        items = list(self.items.values())
        if len(items) <= documents:
            return [self]
        parts = [items[first : first + documents] for first in range(0, len(items), documents)]
        return [Batch(part, lates=0 if len(part) == 1 else 1) for part in parts]


class Batches:
    """The batches of an import that wait or are in flight."""

    def __init__(self, concurrency: int) -> None:
        self.pace = Pace(concurrency)
        self.report = ImportReport()
        self._waiting: list[Batch] = []
        self._sent: list[Batch] = []

    @property
    def has_room(self) -> bool:
        """Whether another batch would be sent at once."""
        return len(self._waiting) + len(self._sent) < self.pace.requests

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._sent

    def holds(self, doc_id: str) -> bool:
        return any(doc_id in batch.items for batch in (*self._waiting, *self._sent))

    def put(self, batch: Batch) -> None:
        self.report.failed.extend(batch.failed)
        self.report.identifiers_left_out += sum(item.identifiers_left_out for item in batch.items.values())
        self._waiting.append(batch)

    def next(self) -> Batch | None:
        """The batch to send now; none if all wait for those in flight."""
        if not self._waiting or len(self._sent) >= self.pace.requests:
            return None
        first, *rest = self._waiting.pop(0).cut(self.pace.documents)
        self._waiting[:0] = rest
        first.beside = len(self._sent)
        for other in self._sent:
            other.beside = max(other.beside, len(self._sent))
        self._sent.append(first)
        return first

    def stored(self, batch: Batch, answer: UpsertResult | None) -> None:
        """Without an answer, every document was refused."""
        self._sent.remove(batch)
        if answer is not None:
            self.pace.stored()
            self.report.add(answer)

    def refused(self, batch: Batch, failures: Mapping[str, DocumentFailure]) -> None:
        for doc_id, failure in failures.items():
            del batch.items[doc_id]
            self.report.failed.append(failure)

    def late(self, batch: Batch, error: LateError) -> None:
        """Raises the error of the service if it ends the import."""
        verdict = self.pace.late(documents=len(batch.items), beside=batch.beside, lates=batch.lates)
        if verdict == "end":
            raise error.reason
        self._sent.remove(batch)
        if verdict == "give up":
            for item in batch.items.values():
                self.report.failed.append(_failure(item.doc_id, f"sent alone three times: {error.reason}"))
            return
        batch.lates += 1
        self._waiting[:0] = batch.cut(verdict)


def refused_items(error: APIError, items: Sequence[Item]) -> dict[str, DocumentFailure]:
    """Documents that the issues of a refused request name, by id, each with what is wrong."""
    refused: dict[str, DocumentFailure] = {}
    if error.status == 413 and len(items) == 1:
        return {items[0].doc_id: _failure(items[0].doc_id, str(error))}
    if error.status != 422:
        return refused
    for issue in error.issues:
        match = re.match(r"documents\.(\d+)(?:\.|$)", issue.path)
        if match is None or int(match[1]) >= len(items):
            continue
        item = items[int(match[1])]
        refused.setdefault(item.doc_id, _failure(item.doc_id, f"{issue.path}: {issue.message}"))
    return refused


def _failure(doc_id: str, error: str) -> DocumentFailure:
    # Not validated: the id may be what is wrong.
    return DocumentFailure.model_construct(doc_id=doc_id, error=error)
