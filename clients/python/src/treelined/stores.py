"""Ids for packages that keep the sessions of another program, whose keys are any text."""

from __future__ import annotations

import hashlib
import re

_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST = 128
_HASHED = "k-"


def session_id(key: str) -> str:
    """Return the id of the session of a key: the key itself where it is a valid id.

    Any other key, and one that begins like a hashed one, has the id `k-` and 40 hexadecimal digits
    of its SHA-256. The session has the key in full, so that its user can compare it
    (`schema/stores.md`).
    """
    if _ID.fullmatch(key) and len(key) <= _LONGEST and not key.startswith(_HASHED):
        return key
    # A lone surrogate has no UTF-8.
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    return f"{_HASHED}{digest[:40]}"
