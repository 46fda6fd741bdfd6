"""Every public method of the parts for frameworks has a docstring with an example that is Python."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent
from types import ModuleType

import pytest

from maxsimd.integrations import haystack, langchain, llama_index


@pytest.mark.parametrize("module", [haystack, langchain, llama_index])
def test_classes_and_their_methods_have_examples(module: ModuleType) -> None:
    classes = [one for name, one in vars(module).items() if name.startswith("Maxsimd") and name != "Maxsimd"]
    assert len(classes) >= 2
    for one in classes:
        own = [member for name, member in inspect.getmembers(one, inspect.isfunction) if not name.startswith("_")]
        methods = [member for member in own if member.__module__ == module.__name__]
        for described in (one, *methods):
            _, _, example = (inspect.getdoc(described) or "").partition("\nExample:\n")
            assert example != "", described
            compile(dedent(example), str(described), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
