"""Filters of the frameworks as conditions of the service's `where`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
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
    """One of them holds. Alternatives among them stand beside the others, so they nest no deeper."""
    return {"any_of": [one for given in conditions for one in _alternatives(given)]}


def all_of(conditions: Iterable[Condition]) -> Condition:
    """An object of `where` has each field, each operator of a field, and `any_of` once. More of them are nested in `any_of`.

    Raises a `ValueError` where that is more than the service takes.
    """
    return _Writing().all_of(conditions, 0)


class _Writing:
    """Writes one condition, and counts its values, so that no more are written than the service takes."""

    def __init__(self) -> None:
        self._values = 0

    def all_of(self, conditions: Iterable[Condition], depth: int) -> Condition:
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
            self._count(joined)
            return joined
        groups = [joined.pop("any_of", [{}]), *map(_alternatives, rest)]
        self._count(joined)
        if depth == DEPTH_MAX:
            raise _too_large()
        # One of each group holds.
        return {**joined, "any_of": [self.all_of(chosen, depth + 1) for chosen in product(*groups)]}

    def _count(self, condition: Condition) -> None:
        self._values += _values_in(condition)
        if self._values > VALUES_MAX:
            raise _too_large()


def _alternatives(condition: Condition) -> list[Condition]:
    return condition["any_of"] if condition.keys() == {"any_of"} else [condition]


def _values_in(condition: Condition) -> int:
    """With how many values the service compares. A list without values counts as one."""
    return sum(
        sum(map(_values_in, part)) if name == "any_of" else _values_of(part) for name, part in condition.items()
    )


def _values_of(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_values_of, value.values()))
    return max(1, len(value)) if isinstance(value, list) else 1


def _too_large() -> ValueError:
    return ValueError(
        f"a search cannot hold this filter: written out, it nests more than {DEPTH_MAX} deep, or compares with more than {VALUES_MAX} values"
    )


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
