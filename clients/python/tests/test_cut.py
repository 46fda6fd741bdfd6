"""How an import cuts long documents. The TypeScript client passes the same cases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from maxsimd import MaxsimdError
from maxsimd.added import AddedFields
from maxsimd.cut import Cutting, StaleParts, cut_document
from maxsimd.models import StoredDocument

CASES = json.loads((Path(__file__).parents[3] / "test/clients/cases/cut.json").read_text())["cases"]


def _written(pieces: list[tuple[str, int]]) -> str:
    return "".join(piece * times for piece, times in pieces)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_long_document_is_cut(case: dict[str, Any]) -> None:
    metadata = {name: _written(value) for name, value in case.get("metadata", {}).items()}
    document = {"doc_id": "manual", "text": _written(case["text"]), "metadata": metadata}
    cutting = Cutting.of(case["cut"], AddedFields(case.get("keep_text")))
    assert cutting is not None
    if "error" in case:
        with pytest.raises(MaxsimdError, match=re.escape(case["error"])):
            cut_document(document, cutting)
        return
    found = cut_document(document, cutting)
    if case["parts"] is None:
        assert found == [document]
        return
    assert len(found) == len(case["parts"])
    for number, (part, expected) in enumerate(zip(found, case["parts"], strict=True), 1):
        headings = {} if expected["headings"] is None else {"headings": expected["headings"]}
        assert part["doc_id"] == f"manual#{number}"
        assert part["metadata"] == {"part_of": "manual", "part": number, **headings}
        assert part["text"].startswith(expected["starts"])
        assert part["text"].endswith(expected["ends"])


@pytest.mark.parametrize("cut", [0, 1023, 102_401, 1500.5])
def test_a_cut_is_a_number_of_bytes(cut: Any) -> None:
    with pytest.raises(MaxsimdError, match="cut: bytes of text from 1024 to 102400, or True"):
        Cutting.of(cut, AddedFields())


def test_spaces_alone_have_no_parts() -> None:
    blank = {"doc_id": "blank", "text": "\n" * 3000}
    assert cut_document(blank, Cutting(1024, AddedFields())) == [blank]


def _stored(doc_id: str, metadata: dict[str, Any] | None = None) -> StoredDocument:
    return StoredDocument.model_construct(doc_id=doc_id, metadata=metadata or {})


def test_what_a_cut_leaves_behind() -> None:
    stale = StaleParts()
    for doc_id, parts in {"cut": 2, "whole": 1, "half": 3, "failed": 2}.items():
        stale.add(doc_id, parts)
    stale.drop("failed#2")
    stored = [
        *(_stored(f"cut#{part}", {"part_of": "cut", "part": part}) for part in (1, 2, 3)),
        _stored("cut"),
        _stored("whole"),
        _stored("whole#1", {"part_of": "whole", "part": 1}),
        _stored("failed"),
        *(_stored(f"failed#{part}", {"part_of": "failed", "part": part}) for part in (1, 2, 3)),
        # Not all parts are stored, so the document of before stays.
        _stored("half"),
        _stored("half#1", {"part_of": "half", "part": 1}),
        # These are no parts.
        _stored("cut#9", {"part_of": "another", "part": 9}),
        _stored("other", {"part_of": "cut", "part": 7}),
        _stored("cut#intro", {"part_of": "cut", "part": "intro"}),
        _stored("cut#True", {"part_of": "cut", "part": True}),
    ]
    assert stale.among([document for document in stored if stale.concerns(document)]) == ["cut#3", "cut", "whole#1"]
