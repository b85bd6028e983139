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
"""Stands for a param that is left out.

None cannot: for some params it means the position before the first entry.
"""


def given(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params that are not left out."""
    return {name: value for name, value in params.items() if value is not OMITTED}


def named(answers: object) -> dict[str, Any]:
    """Return the answerers by name; empty if only names were given."""
    return dict(answers) if isinstance(answers, dict) else {}
