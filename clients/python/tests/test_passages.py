"""Passages and highlights are cut by code points, whatever characters come before them."""

from typing import Any

from maxsimd import QueryResult, Result, highlights, passage

TEXT = "🎈🎈 e\u0301t 東京 bees dance"


def match(token: int, similarity: float, text_range: dict[str, int] | None) -> dict[str, Any]:
    return {
        "token_index": 0,
        "document_token_index": token,
        "similarity": similarity,
        "text_range": text_range,
    }


CHUNK: dict[str, Any] = {
    "chunk_id": "1-0",
    "chunk_index": 0,
    "score": 1.0,
    "text_range": {"start": 3, "end": 14},
    "components": {
        "maxsim": 1.0,
        "per_query_token": [
            match(5, 0.5, {"start": 10, "end": 14}),
            match(3, 0.25, {"start": 7, "end": 8}),
            match(5, 0.75, {"start": 10, "end": 14}),
            match(0, 0.9, None),
        ],
    },
}


def test_passage_and_highlights() -> None:
    result = Result.model_validate({"doc_id": "d", "metadata": {}, **CHUNK})
    assert passage(TEXT, result) == "e\u0301t 東京 bees"
    found = [(one.text, one.start, one.end, one.similarity) for one in highlights(TEXT, result)]
    assert found == [("東", 7, 8, 0.25), ("bees", 10, 14, 0.75)]


def test_a_vector_that_stands_for_several_tokens_highlights_each() -> None:
    ranges = [{"start": start, "end": end} for start, end in [(3, 6), (7, 8), (10, 14)]]
    pooled = {**match(1, 0.5, ranges[1]), "text_ranges": ranges}
    components = {"maxsim": 1.0, "per_query_token": [pooled, match(2, 0.75, ranges[1])]}
    result = Result.model_validate({"doc_id": "d", "metadata": {}, **CHUNK, "components": components})
    found = [(one.text, one.similarity) for one in highlights(TEXT, result)]
    assert found == [("e\u0301t", 0.5), ("東", 0.75), ("bees", 0.5)]


def test_of_a_grouped_result_the_best_chunk_counts() -> None:
    grouped = QueryResult.model_validate({"doc_id": "d", "score": 1.0, "metadata": {}, "chunks": [CHUNK]})
    assert passage(TEXT, grouped) == "e\u0301t 東京 bees"
    assert len(highlights(TEXT, grouped)) == 2


def test_without_a_range_the_passage_is_the_whole_text() -> None:
    old = Result(doc_id="d", chunk_id="1-0", chunk_index=0, score=1.0, metadata={})
    assert passage(TEXT, old) == TEXT
    assert highlights(TEXT, old) == []
