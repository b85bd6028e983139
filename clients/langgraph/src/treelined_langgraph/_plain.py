"""Which values are JSON as they are."""

from __future__ import annotations

import math
from typing import Any

DEPTH = 48
"""Nesting that a value in an entry may have; the daemon takes 256 levels."""


def is_plain(value: Any, depth: int = DEPTH) -> bool:  # noqa: ANN401, PLR0911
    """Return whether JSON gives exactly this value back."""
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return True
    if kind is str:
        return _is_text(value)
    if kind is float:
        return math.isfinite(value)
    if depth == 0:
        return False
    if kind is list:
        return all(is_plain(item, depth - 1) for item in value)
    if kind is dict:
        return all(
            type(name) is str and _is_text(name) and is_plain(item, depth - 1)
            for name, item in value.items()
        )
    return False


def is_exactly(value: Any, other: Any) -> bool:  # noqa: ANN401
    """Return whether a value is this plain one, in the order and the types of numbers too."""
    kind = type(other)
    if type(value) is not kind:
        return False
    if kind is dict:
        return len(value) == len(other) and all(
            name == of and type(name) is str and is_exactly(item, known)
            for (name, item), (of, known) in zip(value.items(), other.items(), strict=True)
        )
    if kind is list:
        return len(value) == len(other) and all(map(is_exactly, value, other))
    if kind is float and value == 0:
        return str(value) == str(other)
    return bool(value == other)


def copy(value: Any) -> Any:  # noqa: ANN401
    """Copy plain JSON, since callers may change what they get."""
    if type(value) is dict:
        return {name: copy(item) for name, item in value.items()}
    if type(value) is list:
        return [copy(item) for item in value]
    return value


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
