"""Filters of frameworks find what they say, however they are nested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest

from maxsimd import Maxsimd
from maxsimd.integrations.conditions import Condition, all_of, any_of, is_missing, of_field

Metadata = dict[str, Any]


class Filter(NamedTuple):
    """A condition, and what it says."""

    condition: Condition
    holds: Callable[[Metadata], bool]


OPERATORS: list[tuple[Callable[[int], dict[str, Any]], Callable[[Any, int], bool]]] = [
    (lambda value: {"in": [value]}, lambda found, value: found == value),
    (lambda value: {"not": {"in": [value]}}, lambda found, value: found != value),
    (lambda value: {"gt": value}, lambda found, value: found is not None and found > value),
    (lambda value: {"gte": value}, lambda found, value: found is not None and found >= value),
    (lambda value: {"lt": value}, lambda found, value: found is not None and found < value),
    (lambda value: {"lte": value}, lambda found, value: found is not None and found <= value),
    (lambda value: is_missing(value), lambda found, value: found is None or found == value),
]


def leaf(random: Random) -> Filter:
    name, value = random.choice("abc"), random.randrange(3)
    if random.random() < 0.2:
        return Filter(of_field("tags", {"contains_all": [value]}), lambda metadata: value in metadata["tags"])
    operators, compare = random.choice(OPERATORS)
    return Filter(of_field(name, operators(value)), lambda metadata: compare(metadata.get(name), value))


def both(parts: list[Filter]) -> Filter:
    return Filter(all_of(part.condition for part in parts), lambda metadata: all(part.holds(metadata) for part in parts))


def either(parts: list[Filter]) -> Filter:
    return Filter(any_of(part.condition for part in parts), lambda metadata: any(part.holds(metadata) for part in parts))


def alternatives(random: Random) -> Filter:
    return either([both([leaf(random), leaf(random)]), leaf(random)])


@pytest.fixture
def found(url: str, key: str, name: str) -> Iterator[Callable[[Condition], list[Metadata]]]:
    values = [None, 0, 1, 2]
    every = [
        {name: value for name, value in zip("abc", chosen) if value is not None} | {"tags": [at % 3, at % 2]}
        for at, chosen in enumerate(product(values, repeat=3))
    ]
    documents = [{"doc_id": f"{at:02}", "text": "a", "metadata": one} for at, one in enumerate(every)]
    with Maxsimd(url, key) as client:
        index = client.create_index(f"conditions {name}")
        client.import_documents(index.id, documents)
        yield lambda where: [document.metadata for document in client.list_documents(index.id, where=where)]
        client.delete_index(index.id)


def test_every_nesting_finds_what_it_says(found: Callable[[Condition], list[Metadata]]) -> None:
    random, every = Random(1), found({})
    sizes = []
    for _ in range(60):
        try:
            asked = both([*(alternatives(random) for _ in range(random.randint(2, 4))), leaf(random)])
        except ValueError:
            continue
        matching = [metadata for metadata in every if asked.holds(metadata)]
        assert found(asked.condition) == matching, asked.condition
        sizes.append(len(matching))
    assert (len(every), len(sizes) > 50, len(set(sizes)) > 5) == (64, True, True), sizes


def test_conditions_of_one_kind_on_one_field_all_hold(found: Callable[[Condition], list[Metadata]]) -> None:
    def values(*operators: dict[str, Any]) -> set[int | None]:
        return {metadata.get("a") for metadata in found(all_of(of_field("a", one) for one in operators))}

    assert values({"gt": 0}, {"gt": 1}) == {2}
    assert values({"gte": 1}, {"gt": 0}, {"lt": 2}, {"lt": 3}) == {1}
    assert values({"in": [0, 1]}, {"in": [1, 2]}) == {1}
    assert values(*({"not": {"in": [value]}} for value in (0, 1, 2, 3, 4, 5))) == {None}
    assert values(is_missing(1), is_missing(1, 2), {"not": {"in": [2]}}) == {None, 1}


def test_a_filter_that_is_too_large_is_refused() -> None:
    pairs = [any_of([of_field(name, {"in": [at]}) for at in range(2)]) for name in map(str, range(1000))]
    long = [any_of([of_field(name, {"in": [at]}) for at in range(12)]) for name in "ab"]
    assert len(all_of(pairs[:5])["any_of"]) == 32
    for many in (pairs[:6], pairs, long, [of_field("a", {"in": [at]}) for at in range(5)]):
        with pytest.raises(ValueError, match="a search cannot hold this filter: .* 3 deep, or .* more than 256 values"):
            all_of(many)
    with pytest.raises(ValueError, match="called `any_of`"):
        of_field("any_of", {"in": [1]})
