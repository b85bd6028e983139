"""How a param that is left out is told from one that is None."""

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
"""Left out: for some params None means something else, such as the place before the first entry."""


def given(params: dict[str, Any]) -> dict[str, Any]:
    """Give the params that are not left out."""
    return {name: value for name, value in params.items() if value is not OMITTED}


def named(answers: object) -> dict[str, Any]:
    """Give the answerers by name; a list of names has none."""
    return dict(answers) if isinstance(answers, dict) else {}
