"""Filters of the frameworks as conditions of the service's `where`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import prod
from typing import Any

Condition = dict[str, Any]

DEPTH_MAX = 3
"""How deep the service nests `any_of`."""

VALUES_MAX = 256
"""With how many values the service compares at once."""


def of_field(name: str, operators: dict[str, Any]) -> Condition:
    """A condition on one field. Raises a `ValueError` for the one name that `where` reads otherwise."""
    if name == "any_of":
        raise ValueError("a search cannot compare a field that is called `any_of`")
    return {name: operators}


def is_missing(*values: Any) -> dict[str, Any]:
    """Operators: the field is missing, or has one of these values."""
    return {"not": {"exists": True, "not": {"in": list(values)}}}


def any_of(conditions: Iterable[Condition]) -> Condition:
    return {"any_of": list(conditions)}


def all_of(conditions: Iterable[Condition], depth: int = 0) -> Condition:
    """An object of `where` has each field, each operator of a field, and `any_of` once. More of them are nested in `any_of`.

    Raises a `ValueError` where that is more than the service takes.
    """
    joined: Condition = {}
    rest: list[Condition] = []
    for condition in conditions:
        for name, operators in condition.items():
            both = _both(joined[name], operators) if name in joined else operators
            if both is None:
                rest.append({name: operators})
            else:
                joined[name] = both
    if not rest:
        return joined
    groups = [joined.get("any_of", [{}]), *(one.get("any_of", [one]) for one in rest)]
    if depth == DEPTH_MAX or prod(map(len, groups)) > VALUES_MAX:
        raise ValueError(
            f"a search cannot hold this filter: it nests more than {DEPTH_MAX} deep, or has more than {VALUES_MAX} ways to hold"
        )
    # One of each group holds.
    return {**joined, "any_of": [all_of(chosen, depth + 1) for chosen in product(*groups)]}


def _lists(one: Any, other: Any) -> list[Any] | None:
    return [*one, *other] if isinstance(one, list) and isinstance(other, list) else None


def _nots(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    values = _lists(one["in"], other["in"]) if one.keys() == other.keys() == {"in"} else None
    return None if values is None else {"in": values}


# An array that has all items of two lists has all items of each.
_JOINS: dict[str, Callable[[Any, Any], Any]] = {"contains_all": _lists, "not": _nots}


def _both(one: Any, other: Any) -> Any:
    """Operators of a field that say what both say. `None`: they do not fit into one object."""
    if isinstance(one, list):
        return None
    shared = one.keys() & other.keys()
    if not shared <= _JOINS.keys():
        return None
    both = {**one, **other, **{name: _JOINS[name](one[name], other[name]) for name in shared}}
    # A range has one lower and one upper bound.
    has_two_bounds = {"gt", "gte"} <= both.keys() or {"lt", "lte"} <= both.keys()
    return None if has_two_bounds or any(value is None for value in both.values()) else both
