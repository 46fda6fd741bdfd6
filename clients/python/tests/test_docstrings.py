"""Every public method of the clients has a docstring with an example that is Python and calls the method."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent

import pytest

from maxsimd import AsyncMaxsimd, Maxsimd


@pytest.mark.parametrize("client", [Maxsimd, AsyncMaxsimd])
def test_every_method_has_an_example(client: type[Maxsimd | AsyncMaxsimd]) -> None:
    methods = inspect.getmembers(client, inspect.isfunction)
    public = [(name, method) for name, method in methods if not name.startswith("_")]
    assert len(public) > 15
    for name, method in public:
        _, _, example = (inspect.getdoc(method) or "").partition("\nExample:\n")
        tree = compile(dedent(example), name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        assert name in [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)], name
