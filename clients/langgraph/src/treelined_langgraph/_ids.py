"""Ids of entries."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def entry_id(*parts: Any) -> str:  # noqa: ANN401
    """Return the same id for the same parts, so that a repeated write is recognized."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
