"""The keys of sessions in the SDK, and their ids in treelined."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from treelined import stores

if TYPE_CHECKING:
    from claude_agent_sdk import SessionKey

HEAD = "k-key"
"""The id of the entry that stores the key. A `uuid` that begins like this is hashed."""
HEAD_TYPE = "claude-agent-sdk.key"

Parts = tuple[str, ...]
"""The parts of a key: project, session, and for a subagent its sub-path."""


def parts_of(key: SessionKey) -> Parts:
    """Return the parts of a key. Raises ValueError for an empty sub-path."""
    subpath = key.get("subpath")
    if subpath == "":
        raise ValueError("the subpath is empty: leave it out for the main transcript")
    whole: Parts = (key["project_key"], key["session_id"])
    # JSON joins the two halves of a character.
    return tuple(json.loads(text_of(whole if subpath is None else (*whole, subpath))))


def text_of(parts: Parts) -> str:
    """Return the key as a JSON array in ASCII, which is the same text in JavaScript.

    A lone surrogate becomes an escape in it, so its hash is the same too.
    """
    return json.dumps(parts, separators=(",", ":"))


def session_of(parts: Parts) -> str:
    """Return the session id for a key: `k-…`, since the array is not a valid id."""
    return stores.session_id(text_of(parts))


def key_in(entry: dict[str, Any], session: str) -> Parts | None:
    """Return the key in the first entry; None if a store has not written this entry."""
    data = entry.get("data")
    text = data.get("key") if isinstance(data, dict) else None
    if entry.get("customType") != HEAD_TYPE or not isinstance(text, str):
        return None
    # A fork that treelined has made contains the key of its source.
    if stores.session_id(text) != session:
        return None
    try:
        parts = json.loads(text)
    except ValueError:
        return None
    return tuple(parts) if isinstance(parts, list) else None


def entry_id(uuid: object) -> str | None:
    """Return the entry id for a record; None if the record has no `uuid`."""
    # `root` means the position before the first entry, so it cannot be an id.
    return stores.session_id(uuid) if isinstance(uuid, str) and uuid != "root" else None
