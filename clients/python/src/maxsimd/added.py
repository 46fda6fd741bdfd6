"""The metadata fields that an import adds to documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import MaxsimdError
from .identifiers import identifiers_in

METADATA_BYTES_MAX = 16 * 1024


@dataclass(frozen=True)
class AddedFields:
    """Names of metadata fields. Raises a `MaxsimdError` if both are one field."""

    keep_text: str | None = None
    """Keeps the text."""
    identifiers: str | None = None
    """Has the words of the text that look like identifiers."""

    def __post_init__(self) -> None:
        if self.keep_text is not None and self.keep_text == self.identifiers:
            raise MaxsimdError(f'"{self.keep_text}" cannot keep both the text and the identifiers')

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.keep_text, self.identifiers) if name is not None)


def assert_free(document: Mapping[str, Any], fields: Iterable[str]) -> None:
    """Raises a `MaxsimdError` if the metadata have one of the fields that this import adds."""
    metadata = document.get("metadata") or {}
    for field in fields:
        if field in metadata:
            raise MaxsimdError(f"metadata.{field}: the import adds a field of this name")


def add_fields(document: dict[str, Any], added: AddedFields) -> int:
    """Adds them to the metadata. Returns how many identifiers the metadata have no room for."""
    text = document.get("text")
    if added.keep_text is not None:
        document["metadata"] = {**(document.get("metadata") or {}), added.keep_text: text}
    # The service refuses another text.
    if added.identifiers is None or not isinstance(text, str):
        return 0
    identifiers = identifiers_in(text)
    if not identifiers:
        return 0
    metadata = document.get("metadata") or {}
    kept: list[str] = []
    room = METADATA_BYTES_MAX - json_bytes({**metadata, added.identifiers: []})
    for identifier in identifiers:
        # The first one has no comma.
        size = json_bytes(identifier) + bool(kept)
        if size <= room:
            kept.append(identifier)
            room -= size
    if kept:
        document["metadata"] = {**metadata, added.identifiers: kept}
    return len(identifiers) - len(kept)


def json_bytes(value: Any) -> int:
    # What is no JSON is refused when the document is encoded.
    return len(utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)))


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
