"""Batches of an import, without any input or output: at most 50 documents and 5 MiB a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .calls import Document, document_json, time_text
from .errors import APIError
from .models import DocumentFailure, DocumentInput, UpsertResult

DOCUMENTS_MAX = 50
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


def item_of(document: Document) -> Item:
    if isinstance(document, DocumentInput):
        return Item(document.doc_id, document_json(document), None)
    expiry = document.get("expires_at") if isinstance(document, Mapping) else None
    if expiry is None:
        return Item(str(document["doc_id"]), document_json(document), None)
    stored = {name: field for name, field in document.items() if name != "expires_at"}
    return Item(str(document["doc_id"]), document_json(stored), time_text(expiry))


class Batch:
    """Grows until the next item does not fit."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self._bytes = _ENVELOPE_BYTES

    def fits(self, item: Item) -> bool:
        return (
            item.doc_id not in self.items
            and all(other.expires_at == item.expires_at for other in self.items.values())
            and len(self.items) < DOCUMENTS_MAX
            and self._bytes + len(item.json) + 1 <= BODY_BYTES_MAX
        )

    def add(self, item: Item) -> None:
        self.items[item.doc_id] = item
        self._bytes += len(item.json) + 1


def refused_items(error: APIError, items: Sequence[Item]) -> dict[str, DocumentFailure]:
    """Documents that the issues of a refused request name, by id, each with what is wrong."""
    refused: dict[str, DocumentFailure] = {}
    if error.status == 413 and len(items) == 1:
        return {items[0].doc_id: _failure(items[0], str(error))}
    if error.status != 422:
        return refused
    for issue in error.issues:
        match = re.match(r"documents\.(\d+)(?:\.|$)", issue.path)
        if match is None or int(match[1]) >= len(items):
            continue
        item = items[int(match[1])]
        refused.setdefault(item.doc_id, _failure(item, f"{issue.path}: {issue.message}"))
    return refused


def _failure(item: Item, error: str) -> DocumentFailure:
    # Not validated: the id may be what is wrong.
    return DocumentFailure.model_construct(doc_id=item.doc_id, error=error)
