"""One thread: its session, and what the session says about checkpoints."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelined import TreelinedError

if TYPE_CHECKING:
    from treelined import Client

    from ._values import Item

PAGE = 8 << 20
"""Bytes of a page of entries."""

HEAD = "langgraph.thread"
CHECKPOINT = "langgraph.checkpoint"
WRITES = "langgraph.writes"
GONE = "langgraph.deleted"


class Node:
    """A checkpoint: its record, and where each channel of its state is stored."""

    def __init__(self, entry: str, record: dict[str, Any], parent: Node | None) -> None:
        self.entry = entry
        self.record = record
        self.parent = parent
        self.is_gone = False
        self.has_child = False
        self.up: Node | None = parent
        # Later entries are appended below `tail`, after the writes of this checkpoint.
        self.tail = entry
        # Messages of this state by the hash of their value.
        self.own: dict[bytes, str] = {}
        # The checkpoint that has the value, for each channel.
        self.at: dict[str, Node] = dict(parent.at) if parent else {}
        for name in record.get("dropped", ()):
            self.at.pop(name, None)
        for name in record["values"]:
            self.at[name] = self

    def items(self, channel: str) -> list[dict[str, Any]] | None:
        """Return the encoded items of a list, or None if the value is stored whole."""
        node = self.at[channel]
        pieces: list[list[dict[str, Any]]] = []
        limit: int | None = None
        while True:
            value = node.record["values"][channel]
            if "items" not in value:
                return None
            keep = value["keep"]
            if limit is None or limit > keep:
                pieces.append(value["items"][: None if limit is None else limit - keep])
                limit = keep
            if limit == 0 or node.parent is None:
                break
            node = node.parent.at[channel]
        return [item for piece in reversed(pieces) for item in piece]


class Thread:
    """The checkpoints of an open session. Its user holds `lock`."""

    def __init__(self, key: str, session: str, path: str | None) -> None:
        self.key = key
        self.session = session
        self.path = path
        self.size = 0
        self.lock = threading.RLock()
        # Whether its session is known to have the tag by which lists find it.
        self.is_tagged = False
        self._begin()

    def _begin(self) -> None:
        """Know nothing of the session."""
        self.head: str | None = None
        self.last: str | None = None
        self.count = 0
        self.nodes: dict[tuple[str, str], Node] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.writes: dict[tuple[str, str], dict[tuple[str, int], tuple[str, str, Any]]] = {}
        # The entries of writes, by checkpoint.
        self.counts: dict[tuple[str, str], int] = {}
        self.versions: dict[tuple[str, str], int] = {}
        self.newest: dict[str, Node] = {}
        # The items of the lists that were put last, by namespace and channel, with the checkpoint
        # that has them. A put that continues there does not read and serialize them again.
        self.lists: dict[tuple[str, str], tuple[Node, list[Item]]] = {}
        self._owners: dict[str, Node] = {}

    def measure(self) -> None:
        """Set `size`, the bytes of the file twice: the items of its lists are there twice too."""
        with contextlib.suppress(OSError):
            self.size = 2 * Path(self.path).stat().st_size if self.path else 0

    def read(self, client: Client) -> None:
        """Read what was appended since the last time, by any process."""
        while True:
            params: dict[str, Any] = {"sessionId": self.session, "maxBytes": PAGE}
            if self.last is not None:
                params["since"], params["known"] = self.last, self.count
            try:
                page = client.call("get_entries", params)
            except TreelinedError as error:
                if error.kind != "treeChanged":
                    raise
                # Entries of another machine came to stand among the known ones.
                self._begin()
                continue
            for entry in page["entries"]:
                self.take(entry)
                self.last = entry["id"]
                self.count += 1
            if "nextCursor" not in page or not page["entries"]:
                return

    def take(self, entry: dict[str, Any]) -> None:
        """Take one entry, in file order. Entries of other programs mean nothing here."""
        kind, name = entry["type"], entry["id"]
        if kind == "message" and isinstance(entry.get("langgraph"), dict):
            self.messages[name] = entry
            self._follow(entry)
        elif kind == "label":
            self._follow(entry, is_end=True)
        elif kind == "custom":
            data = entry.get("data")
            if not isinstance(data, dict):
                return
            if entry["customType"] == HEAD and self.head is None:
                self.head = name
            elif entry["customType"] == CHECKPOINT:
                self.place(name, data)
            elif entry["customType"] == WRITES:
                self._write(data)
                self._follow(entry, is_end=True)
            elif entry["customType"] == GONE:
                self._remove(data)

    def place(self, name: str, record: dict[str, Any]) -> Node:
        """Add a checkpoint."""
        key = record["ns"], record["id"]
        if key in self.nodes and self.nodes[key].entry == name:
            return self.nodes[key]
        parent = self.nodes.get((record["ns"], record.get("parent", "")))
        node = Node(name, record, parent)
        node.up = parent or self.above(record)
        self.nodes[key] = node
        self.versions[key] = self.versions.get(key, 0) + 1
        self._owners[name] = node
        if parent is not None:
            parent.has_child = True
            parent.tail = parent.entry
        newest = self.newest.get(record["ns"])
        if newest is None or newest.is_gone or newest.record["id"] <= record["id"]:
            self.newest[record["ns"]] = node
        return node

    def above(self, record: dict[str, Any]) -> Node | None:
        """Return the checkpoint of the graph that runs this one as a part."""
        parents = record["metadata"].get("json", {}).get("parents") or {}
        for ns in sorted(parents, key=len, reverse=True):
            node = self.nodes.get((ns, parents[ns]))
            if node is not None and ns != record["ns"]:
                return node
        return None

    def known(self, node: Node | None, digest: bytes) -> str | None:
        """Return the entry of this message on the path to a checkpoint."""
        found = None
        while node is not None and found is None:
            found = node.own.get(digest)
            node = node.up
        return found

    def ordered(self, key: tuple[str, str]) -> list[tuple[str, str, Any]]:
        """Return the writes of a checkpoint in the order of LangGraph."""
        stored = self.writes.get(key, {})
        order = sorted(stored, key=lambda at: (stored[at][0], *at))
        return [(at[0], stored[at][1], stored[at][2]) for at in order]

    def _write(self, data: dict[str, Any]) -> None:
        key = data["ns"], data["id"]
        stored = self.writes.setdefault(key, {})
        self.counts[key] = self.counts.get(key, 0) + 1
        for index, channel, value in data["writes"]:
            at = data["task"], index
            # The first of several usual writes counts, and the last of errors or interrupts.
            if index < 0 or at not in stored:
                stored[at] = data["path"], channel, value

    def _remove(self, data: dict[str, Any]) -> None:
        for ns, checkpoint in data["checkpoints"]:
            node = self.nodes.get((ns, checkpoint))
            if node is not None:
                node.is_gone = True
                left = [n for n in self.nodes.values() if n.record["ns"] == ns and not n.is_gone]
                if self.newest.get(ns) is node and left:
                    self.newest[ns] = max(left, key=lambda n: n.record["id"])

    def _follow(self, entry: dict[str, Any], *, is_end: bool = False) -> None:
        owner = self._owners.get(entry.get("parentId") or "")
        if owner is not None:
            self._owners[entry["id"]] = owner
            if is_end:
                owner.tail = entry["id"]
