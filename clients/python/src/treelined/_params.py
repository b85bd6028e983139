"""Distinguishes a param that is left out from one that is None."""

from __future__ import annotations

import enum
from typing import Any, Final, Literal, TypeAlias


class _Omitted(enum.Enum):
    OMITTED = enum.auto()

    def __repr__(self) -> str:
        return self.name


Omitted: TypeAlias = Literal[_Omitted.OMITTED]
"""The type of `OMITTED`."""

OMITTED: Final = _Omitted.OMITTED
"""The param is left out. For some params None is a position: the place before the first entry."""


def given(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params that are not left out."""
    return {name: value for name, value in params.items() if value is not OMITTED}


def named(answers: object) -> dict[str, Any]:
    """Return the answerers by name; a list of names has none."""
    return dict(answers) if isinstance(answers, dict) else {}
