"""Session ids for packages that store the sessions of another program.

The keys of such a program may be any text.
"""

from __future__ import annotations

import hashlib
import re

_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST = 128
_HASHED = "k-"


def session_id(key: str) -> str:
    """Return the session id for a key. If the key is a valid id, it is the id.

    For any other key, and for a key that looks like a hashed one, the id is `k-` and 40 hexadecimal
    digits of the key's SHA-256. The session stores the whole key, so that a package can compare it
    (`schema/stores.md`).
    """
    if _ID.fullmatch(key) and len(key) <= _LONGEST and not key.startswith(_HASHED):
        return key
    # A lone surrogate has no UTF-8.
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    return f"{_HASHED}{digest[:40]}"
