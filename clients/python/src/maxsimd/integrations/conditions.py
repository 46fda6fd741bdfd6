"""Filters of the frameworks as conditions of the service's `where`."""

from __future__ import annotations

from collections.abc import Iterable
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
            if name not in joined:
                joined[name] = operators
            elif name == "any_of" or joined[name].keys() & operators.keys():
                raise ValueError(f"`where` cannot hold two such conditions on `{name}` at once")
            else:
                joined[name] = {**joined[name], **operators}
    return joined


def any_of(conditions: Iterable[Condition]) -> Condition:
    return {"any_of": list(conditions)}
