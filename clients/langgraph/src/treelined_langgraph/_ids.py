"""Ids of sessions and of entries, by keys of LangGraph."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST = 128
_PREFIX = "k-"


def session_id(key: str) -> str:
    """Return the id of the session of a key: the key itself if it is a valid id."""
    if _ID.fullmatch(key) and len(key) <= _LONGEST and not key.startswith(_PREFIX):
        return key
    # A lone surrogate has no UTF-8.
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    return f"{_PREFIX}{digest[:40]}"


def entry_id(*parts: Any) -> str:  # noqa: ANN401
    """Return the same id for the same parts, so that a repeated write is recognized."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
