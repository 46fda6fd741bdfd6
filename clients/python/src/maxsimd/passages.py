"""Finds in a text what a result names. Ranges count Unicode code points, as strings of Python do."""

from __future__ import annotations

from typing import NamedTuple

from .models import QueryChunk, QueryResult, Result


class Highlight(NamedTuple):
    """A token of the text whose vector is most similar to a token of the query: `text[start:end]`."""

    text: str
    start: int
    end: int
    similarity: float
    """The best similarity of the query's tokens to it."""


def passage(text: str, result: Result | QueryResult | QueryChunk) -> str:
    """The part of `text` that was found. `text` must be as it was upserted.

    Of a grouped result it is that of the best chunk. It is the whole text if the result has no `text_range`.

        for result in client.search(index.id, "how do insects communicate?").results:
            print(passage(texts[result.doc_id], result))
    """
    found = _chunk(result).text_range
    return text if found is None else text[found.start : found.end]


def highlights(text: str, result: Result | QueryResult | QueryChunk) -> list[Highlight]:
    """The tokens of `text` that matched, in their order. Empty unless the search had `return_components`.

        words = [highlight.text for highlight in highlights(text, result)]
    """
    components = _chunk(result).components
    best: dict[int, Highlight] = {}
    for match in components.per_query_token if components else []:
        # A vector that a model pooled stands for several tokens.
        for place in match.text_ranges or ([match.text_range] if match.text_range else []):
            if place.start in best and best[place.start].similarity >= match.similarity:
                continue
            best[place.start] = Highlight(text[place.start : place.end], place.start, place.end, match.similarity)
    return sorted(best.values(), key=lambda highlight: highlight.start)


def _chunk(result: Result | QueryResult | QueryChunk) -> Result | QueryResult | QueryChunk:
    return result.chunks[0] if isinstance(result, QueryResult) and result.chunks else result
