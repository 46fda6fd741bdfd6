"""The tests run against a real service; whoever starts them gives its address and keys of three tenants."""

from __future__ import annotations

import os

import pytest

_made = 0


@pytest.fixture
def url() -> str:
    return os.environ["MAXSIMD_URL"]


@pytest.fixture
def key() -> str:
    """Of a tenant whose limits are never met."""
    return os.environ["MAXSIMD_API_KEY"]


@pytest.fixture
def narrow_key() -> str:
    """Of a tenant with one request at a time."""
    return os.environ["MAXSIMD_NARROW_API_KEY"]


@pytest.fixture
def small_key() -> str:
    """Of a tenant with room for 70 documents."""
    return os.environ["MAXSIMD_SMALL_API_KEY"]


@pytest.fixture
def name() -> str:
    """Of an index that is not there yet."""
    global _made
    _made += 1
    return f"python {_made}"
