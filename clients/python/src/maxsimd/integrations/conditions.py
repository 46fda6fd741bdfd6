"""Filters of the frameworks as conditions of the service's `where`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Condition = dict[str, Any]


def is_empty(field: str) -> Condition:
    """The field is missing, or its value is null or an empty array."""
    return {"any_of": [{field: {"exists": False}}, {field: {"in": [None, []]}}]}


def all_of(conditions: Iterable[Condition]) -> Condition:
    """`where` has each field, each operator of a field, and `any_of` once."""
    joined: Condition = {}
    for condition in conditions:
        for name, operators in condition.items():
            joined[name] = _both(name, joined[name], operators) if name in joined else operators
    return joined


def _both(name: str, one: Any, other: Any) -> Condition:
    rest, others = [
        {} if name == "any_of" else {key: value for key, value in part.items() if key not in _OF_ITEMS}
        for part in (one, other)
    ]
    if name == "any_of" or rest.keys() & others.keys():
        raise ValueError(f"`where` cannot hold two such conditions on `{name}` at once")
    # An array that has each of several items has all of them.
    lists = [_OF_ITEMS[key](part[key]) for part in (one, other) for key in _OF_ITEMS if key in part]
    return {**rest, **others, **({"contains_all": [item for items in lists for item in items]} if lists else {})}


_OF_ITEMS: dict[str, Callable[[Any], list[Any]]] = {"contains": lambda item: [item], "contains_all": list}


def any_of(conditions: Iterable[Condition]) -> Condition:
    return {"any_of": list(conditions)}
