"""Which words an import adds to metadata as identifiers. The TypeScript client and the command line pass the same cases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from maxsimd import MaxsimdError
from maxsimd.identifiers import identifiers_in
from maxsimd.imports import Intake, Item
from maxsimd.models import DocumentFailure

CASES = json.loads((Path(__file__).parents[3] / "test/clients/cases/identifiers.json").read_text())["cases"]


def _written(pieces: list[tuple[str, int]]) -> str:
    return "".join(piece * times for piece, times in pieces)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_words_that_look_like_identifiers(case: dict[str, Any]) -> None:
    metadata = {name: _written(value) for name, value in case.get("metadata", {}).items()}
    text = " ".join(_written(case[part]) for part in ("title", "text") if part in case)
    intake = Intake(keep_text=case.get("keep_text"), identifiers="codes")
    [item] = intake.items_of({"doc_id": "d", "text": text, "metadata": metadata})
    assert isinstance(item, Item)
    assert item.identifiers_left_out == case.get("left_out", 0)
    sent = json.loads(item.json)["metadata"]
    codes = sent.pop("codes", [])
    assert (len(codes) if isinstance(case["kept"], int) else codes) == case["kept"]
    assert sent == {**metadata, **({case["keep_text"]: text} if "keep_text" in case else {})}


def test_the_parts_of_a_text_keep_room_for_their_identifiers() -> None:
    text = "".join(f"E{number}.65, and a few words. " for number in range(3000))
    items = Intake(keep_text="body", identifiers="codes", cut=True).items_of({"doc_id": "d", "text": text})
    assert len(items) > 4
    for item in items:
        assert isinstance(item, Item)
        metadata = json.loads(item.json)["metadata"]
        assert metadata["codes"] == identifiers_in(metadata["body"])


@pytest.mark.parametrize("field", ["body", "codes"])
def test_a_document_that_has_the_field_is_refused(field: str) -> None:
    document = {"doc_id": "d", "text": "plain", "metadata": {field: "mine"}}
    [failure] = Intake(keep_text="body", identifiers="codes").items_of(document)
    assert isinstance(failure, DocumentFailure)
    assert failure.error == f"metadata.{field}: the import adds a field of this name"


def test_identifiers_have_a_field_of_their_own() -> None:
    with pytest.raises(MaxsimdError, match=re.escape('"body" cannot keep both the text and the identifiers')):
        Intake(keep_text="body", identifiers="body")
