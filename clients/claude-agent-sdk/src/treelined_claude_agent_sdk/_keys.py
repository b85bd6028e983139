"""Keys of sessions, and the ids that they have in treelined."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from treelined import stores

if TYPE_CHECKING:
    from claude_agent_sdk import SessionKey

HEAD = "k-key"
"""The id of the entry that has the key. A `uuid` with this beginning is hashed, so none has it."""
HEAD_TYPE = "claude-agent-sdk.key"

Parts = tuple[str, ...]
"""Project, session, and the sub-path of a subagent."""


def parts_of(key: SessionKey) -> Parts:
    """Return the parts of a key. Raises ValueError for an empty sub-path."""
    subpath = key.get("subpath")
    if subpath == "":
        raise ValueError("the subpath is empty: leave it out for the main transcript")
    whole: Parts = (key["project_key"], key["session_id"])
    # Two halves of a character become that character, as in every text that was JSON once.
    return tuple(json.loads(text_of(whole if subpath is None else (*whole, subpath))))


def text_of(parts: Parts) -> str:
    """Return the key as a JSON array in ASCII, the same in Python and JavaScript.

    A lone surrogate is an escape there, so that it is hashed alike too.
    """
    return json.dumps(parts, separators=(",", ":"))


def session_of(parts: Parts) -> str:
    """Return the id of the session of a key. It begins with `k-`: the array is not a valid id."""
    return stores.session_id(text_of(parts))


def key_in(entry: dict[str, Any], session: str) -> Parts | None:
    """Return the key that the first entry of a session has; None if it is not that of a store."""
    data = entry.get("data")
    text = data.get("key") if isinstance(data, dict) else None
    if entry.get("customType") != HEAD_TYPE or not isinstance(text, str):
        return None
    # A fork that treelined has made has the key of its source.
    if stores.session_id(text) != session:
        return None
    try:
        parts = json.loads(text)
    except ValueError:
        return None
    return tuple(parts) if isinstance(parts, list) else None


def entry_id(uuid: object) -> str | None:
    """Return the id of the entry of a record; None for a record without a `uuid`."""
    # `root` is the position before the first entry.
    return stores.session_id(uuid) if isinstance(uuid, str) and uuid != "root" else None
