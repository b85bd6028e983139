"""Values of channels as JSON in entries, and back. `schema/stores.md` has the forms."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from . import _messages
from ._plain import DEPTH, copy, is_exactly, is_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from langgraph.checkpoint.serde.base import SerializerProtocol


class Codec:
    """Encodes by one serializer.

    With a serializer other than LangGraph's own, such as an encrypting one, everything is as that
    serializer writes it.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        self.serde = serde
        self.is_open = isinstance(serde, JsonPlusSerializer)

    def see(self, value: Any, before: Item | None) -> Item:  # noqa: ANN401
        """Return an item of a list as it is now: `before` if it is the same."""
        if before is not None and before.is_of(value):
            return before
        return Item(value, self.digest(value))

    def digest(self, value: Any) -> bytes:  # noqa: ANN401
        """Return a hash of the serialized value."""
        return _digest(self.serde.dumps_typed(value))

    def encode(
        self,
        value: Any,  # noqa: ANN401
        sink: Callable[[bytes, dict[str, Any]], str] | None = None,
        digest: bytes | None = None,
        depth: int = DEPTH,
    ) -> dict[str, Any]:
        """Encode a value; `sink` gives a message an entry and returns its id.

        Without it, and inside of another value, a message has no entry: writes arrive in any order,
        also before the checkpoint whose conversation they go on with, and the tree would show the
        message out of place.
        """
        if self.is_open:
            if is_plain(value, depth):
                return {"json": value}
            if depth > 0 and isinstance(value, BaseMessage):
                entry = _messages.to_entry(value)
                digest = digest or self.digest(value)
                if entry is not None and self.digest(_messages.from_entry(entry)) == digest:
                    return entry if sink is None else {"entry": sink(digest, entry)}
            elif depth > 0 and type(value) in (list, tuple):
                # The serializer makes a list of a tuple too.
                return {"keep": 0, "items": [self.encode(item, depth=depth - 2) for item in value]}
            elif depth > 0 and type(value) is dict and is_plain(dict.fromkeys(value)):
                members = {name: self.encode(item, depth=depth - 2) for name, item in value.items()}
                return {"members": members}
        kind, data = self.serde.dumps_typed(value)
        return {"type": kind, "base64": base64.b64encode(data).decode()}

    def decode(self, encoded: dict[str, Any], entries: dict[str, dict[str, Any]]) -> Any:  # noqa: ANN401
        """Return a new copy of a value that is not a list in pieces."""
        if "json" in encoded:
            return copy(encoded["json"])
        if "entry" in encoded:
            return _messages.from_entry(entries[encoded["entry"]])
        if "message" in encoded:
            return _messages.from_entry(encoded)
        if "members" in encoded:
            members = encoded["members"]
            return {name: self.decode(item, entries) for name, item in members.items()}
        if "items" in encoded:
            return [self.decode(item, entries) for item in encoded["items"]]
        return self.serde.loads_typed((encoded["type"], base64.b64decode(encoded["base64"])))

    def digest_of(self, encoded: dict[str, Any], entries: dict[str, dict[str, Any]]) -> bytes:
        """Return the hash that the value had when it was encoded."""
        if "base64" in encoded:
            return _digest((encoded["type"], base64.b64decode(encoded["base64"])))
        return self.digest(self.decode(encoded, entries))


class Item:
    """An item of a list as it was: its hash, and a copy that tells whether it is still the same.

    To compare with the copy is several times as fast as to serialize the item.
    """

    __slots__ = ("copy", "digest", "kind")

    def __init__(self, value: Any, digest: bytes) -> None:  # noqa: ANN401
        members = _members(value)
        self.digest = digest
        self.kind = type(value)
        self.copy = copy(members) if is_plain(members) else None

    def is_of(self, value: Any) -> bool:  # noqa: ANN401
        """Return whether the value is exactly this one."""
        if type(value) is not self.kind or self.copy is None:
            return False
        return is_exactly(_members(value), self.copy)


def _members(value: Any) -> list[Any]:  # noqa: ANN401
    """Return all that the serialized value depends on."""
    if type(value) in _messages.ROLES:
        return [value.__dict__, value.__pydantic_extra__, value.__pydantic_private__]
    return [value]


def _digest(typed: tuple[str, bytes]) -> bytes:
    kind, data = typed
    return hashlib.blake2b(kind.encode() + b"\0" + data, digest_size=16).digest()
