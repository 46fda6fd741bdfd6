"""Both clients against the real service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from maxsimd import (
    APIError,
    AsyncMaxsimd,
    AuthenticationError,
    DocumentInput,
    ImportProgress,
    ImportReport,
    ImportStopped,
    InvalidRequestError,
    Maxsimd,
    NotFoundError,
    QueryItemInput,
)

NOWHERE = "00000000-0000-4000-8000-000000000000"
ANIMALS: list[DocumentInput | dict[str, Any]] = [
    DocumentInput(
        doc_id="bee/1", text="Honey bees dance to tell where flowers are.", metadata={"kind": "insect", "n": None}
    ),
    {"doc_id": "whale", "text": "The blue whale is the largest animal.", "metadata": {"kind": "mammal"}},
    {"doc_id": "nothing", "text": "   "},
]


def test_an_index_from_its_making_to_its_end(url: str, key: str, name: str) -> None:
    with Maxsimd(url, key) as client:
        assert client.readiness().status == "ready"
        index = client.create_index(name, metadata_schema={"kind": "string"}, chunking={"max_tokens": 64})
        assert index.chunking.max_tokens == 64
        assert client.get_index(index.id) == index
        assert index in client.list_indexes()

        answer = client.upsert(index.id, ANIMALS)
        assert answer.upserted_documents == 2
        assert [failure.doc_id for failure in answer.failed] == ["nothing"]

        found = client.search(index.id, "how do insects communicate?", top_k=2)
        assert [(result.doc_id, result.metadata) for result in found.results] == [
            ("bee/1", {"kind": "insect", "n": None}),
            ("whale", {"kind": "mammal"}),
        ]
        filtered = client.search(index.id, "insects", filter={"kind": "mammal"}, candidate_k=10)
        assert [result.doc_id for result in filtered.results] == ["whale"]
        narrowed = client.search(index.id, "insects", where={"kind": {"not": "mammal"}}, group_by_document=True, exact=True)
        assert [(result.doc_id, len(result.chunks or ())) for result in narrowed.results] == [("bee/1", 1)]
        several = client.query(
            index.id,
            [
                {"query": "how do insects communicate?", "where": {"kind": {"not": "mammal"}}},
                QueryItemInput(query="largest animal", top_k=1, group_by_document=True),
            ],
        )
        assert [[result.doc_id for result in answer.results] for answer in several.results] == [["bee/1"], ["whale"]]
        assert several.results[1].results[0].chunks is not None
        assert client.delete_documents(index.id, where={"kind": "reptile"}).deleted == 0
        dry = client.delete_documents(index.id, where={"kind": {"exists": True}}, dry_run=True)
        assert dry.deleted == 0 and dry.matching is not None
        year = datetime(2100, 1, 1, tzinfo=timezone.utc)
        assert client.set_expiry(index.id, "whale", year).expires_at == year
        assert client.set_expiry(index.id, "whale", None).expires_at is None
        client.upsert(index.id, [{"doc_id": "cod", "text": "A cod is a fish."}], expires_at=year)
        assert client.get_document(index.id, "cod").expires_at == year
        client.import_documents(
            index.id, [{"doc_id": "cod", "text": "A cod is a fish.", "expires_at": "2001-01-01T00:00:00Z"}]
        )
        with pytest.raises(NotFoundError):
            client.get_document(index.id, "cod")
        counted = client.facets(index.id, ["kind"], limit=1)
        assert [(value.value, value.count) for value in counted.facets[0].values] == [("insect", 1)]
        scored = client.score(
            "largest animal",
            [{"doc_id": "a", "text": "An elephant is big."}, {"doc_id": "b", "text": "The blue whale is the largest."}],
            return_components=True,
        )
        assert scored.results[0].doc_id == "b"
        assert scored.results[0].components is not None
        assert scored.results[0].components.maxsim > 0

        assert client.get_document(index.id, "bee/1").metadata == {"kind": "insect", "n": None}
        assert client.update_metadata(index.id, "bee/1", {"checked": True}).metadata == {"checked": True}
        merged = client.merge_metadata(index.id, "bee/1", {"n": {"m": 1}, "checked": None})
        assert merged.metadata == {"n": {"m": 1}}
        client.merge_metadata(index.id, "bee/1", {"checked": True, "n": None})
        listed = [(document.doc_id, document.metadata) for document in client.list_documents(index.id)]
        assert listed == [("bee/1", {"checked": True}), ("whale", {"kind": "mammal"})]
        chosen = client.list_documents(index.id, where={"kind": "mammal"}, fields=iter(["n"]))
        assert [(document.doc_id, document.metadata) for document in chosen] == [("whale", {})]
        (searched,) = (active for active in client.activity().data if active.index_id == index.id)
        assert (searched.hour.searches >= 4, searched.hour.errors) == (True, 0)
        assert client.count_documents(index.id).documents == 2
        other = client.create_index(f"{name} anew")
        assert client.swap_index_names(f"name:{other.name}", f"name:{name}").name == name
        assert client.rename_index(index.id, f"{name} before").name == f"{name} before"
        assert client.get_index(f"name:{name} before").id == index.id
        assert client.set_match_fields(index.id, ("kind",)).match_fields == ["kind"]
        assert client.set_match_fields(index.id, []).match_fields == []
        matched = client.create_index(f"{name} matched", match_fields=["code", "part.number"])
        assert matched.match_fields == ["code", "part.number"]
        client.upsert(matched.id, [{"doc_id": "a", "text": "one", "metadata": {"code": "E-7"}}, {"doc_id": "b", "text": "two"}])
        best = client.search(matched.id, "about e7", match={"fields": ["code"], "weight": 2}, return_components=True).results[0]
        assert best.components and best.components.matches
        assert [(best.doc_id, match.value, match.start) for match in best.components.matches] == [("a", "E-7", 6)]
        without = client.search(matched.id, "about e7", match=False, return_components=True).results[0]
        assert without.components and without.components.matches is None
        assert client.create_index(name, chunking=other.chunking.model_dump(exclude={"strategy"}), if_exists="return").id == other.id
        with pytest.raises(InvalidRequestError) as differs:
            client.create_index(name, chunking={"max_tokens": 1}, if_exists="return")
        assert [issue.path for issue in differs.value.issues] == ["chunking.max_tokens"]
        assert client.import_documents(f"name:{name}", ANIMALS[:1]).documents == 1
        assert len(list(client.list_documents(f"name:{name}"))) == 1

        assert client.delete_document(index.id, "bee/1").deleted is True
        assert client.delete_document(index.id, "bee/1").deleted is False
        assert client.usage().usage.document_upserts >= 2
        assert client.delete_index(index.id).deleted is True


def test_half_an_emoji_in_metadata_comes_back_as_it_was_given(url: str, key: str, name: str) -> None:
    metadata = {"cut": "half \ud83d", "\udc00": 1}
    with Maxsimd(url, key) as client:
        index = client.create_index(name)
        client.upsert(index.id, [{"doc_id": "d", "text": "Honey bees dance.", "metadata": metadata}])
        assert client.get_document(index.id, "d").metadata == metadata
        assert [document.metadata for document in client.list_documents(index.id)] == [metadata]
        assert client.search(index.id, "bees").results[0].metadata == metadata
        client.delete_index(index.id)


def test_the_same_for_asyncio(url: str, key: str, name: str) -> None:
    async def scenario() -> None:
        async with AsyncMaxsimd(url, key) as client:
            index = await client.create_index(name)
            await client.upsert(index.id, ANIMALS)
            one, two = await asyncio.gather(
                client.search(index.id, "how do insects communicate?"),
                client.search(index.id, "how big is a whale?"),
            )
            assert (one.results[0].doc_id, two.results[0].doc_id) == ("bee/1", "whale")
            assert index in await client.list_indexes()
            assert (await client.update_metadata(index.id, "whale", {"n": 1})).chunk_count == 1
            assert (await client.merge_metadata(index.id, "whale", {"m": 2})).metadata == {"n": 1, "m": 2}
            await client.merge_metadata(index.id, "whale", {"m": None})
            assert (await client.get_document(index.id, "whale")).metadata == {"n": 1}
            assert [document.doc_id async for document in client.list_documents(index.id)] == ["bee/1", "whale"]
            chosen = client.list_documents(index.id, where={"n": {"gte": 1}}, fields=["n"])
            assert [(document.doc_id, document.metadata) async for document in chosen] == [("whale", {"n": 1})]
            assert index.id in [active.index_id for active in (await client.activity()).data]
            assert (await client.count_documents(index.id)).chunks == 2
            other = await client.create_index(f"{name} anew")
            assert (await client.swap_index_names(other.id, index.id)).name == name
            assert (await client.rename_index(f"name:{other.name}", f"{name} before")).name == f"{name} before"
            assert (await client.import_documents(f"name:{name} before", ANIMALS)).documents == 2
            assert [document.doc_id async for document in client.list_documents(f"name:{name} before")]
            assert (await client.delete_document(index.id, "whale")).deleted is True
            with pytest.raises(NotFoundError):
                await client.search(NOWHERE, "q")
            assert (await client.delete_index(index.id)).deleted is True

    asyncio.run(scenario())


def test_errors_carry_status_code_issues_and_the_request_id(url: str, key: str) -> None:
    with Maxsimd(url, key) as client:
        with pytest.raises(NotFoundError) as missing:
            client.get_index(NOWHERE)
        assert (missing.value.status, missing.value.code) == (404, "not_found")
        assert missing.value.request_id
        with pytest.raises(InvalidRequestError) as invalid:
            client.score("", [])
        assert [issue.path for issue in invalid.value.issues] == ["query", "documents"]
        assert str(invalid.value).count("query: must not be empty") == 1
    with Maxsimd(url, "qkv_live_wrong") as stranger, pytest.raises(AuthenticationError) as unknown:
        stranger.usage()
    assert unknown.value.status == 401
    assert isinstance(unknown.value, APIError)


def _documents() -> Iterator[dict[str, Any]]:
    for number in range(130):
        yield {"doc_id": f"d{number}", "text": f"stone number {number}"}
    yield {"doc_id": "spaces", "text": "  "}
    yield {"doc_id": "long", "text": "x" * (100 * 1024 + 1)}
    yield {"doc_id": "d7", "text": "the river runs to the sea"}


def _check(report: ImportReport, seen: list[ImportProgress]) -> None:
    assert (report.documents, report.chunks) == (131, 131)
    assert sorted(failure.doc_id for failure in report.failed) == ["long", "spaces"]
    (too_long,) = (failure.error for failure in report.failed if failure.doc_id == "long")
    assert too_long.startswith("documents.")
    assert seen[-1] == ImportProgress(documents=131, chunks=131, failed=2)
    assert [progress.documents for progress in seen] == sorted(progress.documents for progress in seen)


def test_an_import_reports_refused_documents_and_keeps_the_last_of_a_repeated_id(url: str, key: str, name: str) -> None:
    with Maxsimd(url, key) as client:
        index = client.create_index(name)
        seen: list[ImportProgress] = []
        _check(client.import_documents(index.id, _documents(), concurrency=3, on_progress=seen.append), seen)
        assert client.search(index.id, "where does the river run", top_k=1).results[0].doc_id == "d7"


def test_the_same_import_for_asyncio(url: str, key: str, name: str) -> None:
    async def scenario() -> None:
        async with AsyncMaxsimd(url, key) as client:
            index = await client.create_index(name)
            seen: list[ImportProgress] = []
            report = await client.import_documents(index.id, _documents(), concurrency=3, on_progress=seen.append)
            _check(report, seen)
            assert (await client.search(index.id, "where does the river run", top_k=1)).results[0].doc_id == "d7"

    asyncio.run(scenario())


def test_an_import_over_the_concurrency_limit_slows_down_and_ends_whole(url: str, narrow_key: str, name: str) -> None:
    codes: set[str] = set()

    def on_retry(error: Exception, delay: float) -> None:
        assert isinstance(error, APIError)
        assert delay >= 1
        codes.add(error.code)

    documents = [{"doc_id": f"d{number}", "text": f"stone {number}"} for number in range(300)]
    with Maxsimd(url, narrow_key, on_retry=on_retry) as client:
        index = client.create_index(name)
        report = client.import_documents(index.id, documents, concurrency=3)
    assert (report.documents, report.failed) == (300, [])
    assert codes == {"concurrency_limit_exceeded"}


def test_an_import_that_the_document_allowance_stops_says_how_far_it_came(url: str, small_key: str, name: str) -> None:
    documents = [{"doc_id": f"d{number}", "text": f"stone {number}"} for number in range(200)]
    threads = threading.active_count()
    with Maxsimd(url, small_key) as client:
        index = client.create_index(name)
        with pytest.raises(ImportStopped) as stopped:
            client.import_documents(index.id, documents, concurrency=1)
        client.delete_index(index.id)
    assert stopped.value.report.documents == 50
    assert isinstance(stopped.value.__cause__, InvalidRequestError)
    assert threading.active_count() == threads
