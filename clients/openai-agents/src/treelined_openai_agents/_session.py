"""The session."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, resolve_session_limit
from treelined import Client, TreelinedError, stores

from treelined_openai_agents._entries import entry_of, item_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.items import TResponseInputItem

_T = TypeVar("_T")
_KEY = "stores.key"
_PAGE = 8 << 20
"""The most bytes of a page of entries."""


class KeyTaken(Exception):  # noqa: N818
    """The session with this id belongs to another key."""


@dataclass(frozen=True)
class Turn:
    """A user message on the active path. A branch can begin before it."""

    number: int
    """Counts from 1, like the branches of the SDK."""
    entry_id: str
    content: str


class TreelinedSession(SessionABC):
    """A session of the SDK that keeps every branch.

    `session_id` is any text. `client` is the client of treelined to use, which stays open. Without
    one the session starts a daemon, which `close` ends. `cwd` is the working directory under which
    clients list the session.

    `pop_item` and `clear_session` remove nothing: they move the leaf, and the items that are left
    behind stay as a branch.
    """

    def __init__(
        self,
        session_id: str,
        *,
        client: Client | None = None,
        cwd: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._id = stores.session_id(session_id)
        self._cwd = cwd
        self._owns_client = client is None
        self._client = client or Client().__enter__()
        self._is_open = False
        self._root: str | None = None
        self._calls: dict[str, str] = {}
        # Calls come from several threads. They run in the order in which they take the lock.
        self._lock = threading.Lock()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items of the active path, the oldest first."""
        limit = resolve_session_limit(limit, self.session_settings)

        def get() -> list[Any]:
            items = [item for _, item in self._items()] if self._open() else []
            if limit is None:
                return items
            return items[len(items) - limit :] if 0 < limit < len(items) else items[: max(limit, 0)]

        return await self._run(get)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append all of the items at the leaf, or none."""
        if not items:
            return

        def add() -> None:
            self._open(creates=True)
            entries = []
            for item in items:
                entries.append(entry_of(dict(item), self._calls))
                self._note_call(dict(item))
            self._client.append_entries(entries=entries, session_id=self._id)

        await self._run(add)

    async def pop_item(self) -> TResponseInputItem | None:
        """Move the leaf above the newest item, and return this item; None if there are no items."""

        def pop() -> Any:  # noqa: ANN401
            items = self._items() if self._open() else []
            if not items:
                return None
            entry, item = items[-1]
            self._client.set_leaf(leaf_id=entry.get("parentId"), session_id=self._id)
            return item

        return await self._run(pop)

    async def clear_session(self) -> None:
        """Move the leaf to the beginning. The conversation so far stays as a branch."""

        def clear() -> None:
            if self._open():
                self._client.set_leaf(leaf_id=self._root, session_id=self._id)

        await self._run(clear)

    async def get_turns(self) -> list[Turn]:
        """Return the user messages of the active path."""

        def turns() -> list[Turn]:
            items = self._items() if self._open() else []
            users = [(entry, item) for entry, item in items if item.get("role") == "user"]
            return [
                Turn(number, entry["id"], _shown(item.get("content")))
                for number, (entry, item) in enumerate(users, start=1)
            ]

        return await self._run(turns)

    async def create_branch_from_turn(self, number: int, name: str | None = None) -> str:
        """Move the leaf before a turn, so that the next items begin a branch.

        Return the id of the last entry of the branch that is left. This branch gets the name
        `name`. Raises ValueError if the turn does not exist.
        """
        turns = {turn.number: turn for turn in await self.get_turns()}
        if number not in turns:
            raise ValueError(f"no turn {number}: there are {len(turns)}, numbered from 1")
        target = turns[number].entry_id

        def go() -> str:
            tip = str(self._client.get_leaf(session_id=self._id)["leafId"])
            if name is not None:
                self._client.name_branch(entry_id=tip, name=name, session_id=self._id)
            entry = self._client.get_entry(entry_id=target, session_id=self._id)["entry"]
            self._client.set_leaf(leaf_id=entry.get("parentId"), session_id=self._id)
            return tip

        return await self._run(go)

    async def switch_to_branch(self, tip: str) -> None:
        """Move the leaf to the end of a branch, given by its name or the id of its last entry."""

        def go() -> None:
            self._open(creates=True)
            rows = self._client.list_branches(session_id=self._id)["branches"]
            named = [row["tipId"] for row in rows if tip in (row["tipId"], row.get("name"))]
            self._client.set_leaf(leaf_id=named[0] if named else tip, session_id=self._id)

        await self._run(go)

    async def list_branches(self) -> list[dict[str, Any]]:
        """Return a row for each branch, in the format of the daemon's `list_branches`."""

        def rows() -> list[Any]:
            if not self._open():
                return []
            return list(self._client.list_branches(session_id=self._id)["branches"])

        return await self._run(rows)

    def close(self) -> None:
        """End the daemon, if the session has started it."""
        if self._owns_client:
            self._client.close()

    async def _run(self, function: Callable[[], _T]) -> _T:
        def locked() -> _T:
            with self._lock:
                return function()

        # If the caller is cancelled, the thread still completes the change.
        return await asyncio.shield(asyncio.to_thread(locked))

    def _open(self, *, creates: bool = False) -> bool:
        """Open the session once, or create it if `creates`. Return whether it exists."""
        if self._is_open:
            return True
        try:
            self._client.open_session(session_id=self._id)
        except TreelinedError as error:
            if error.kind != "sessionNotFound":
                raise
            if not creates:
                return False
            self._create()
        page = self._client.call("get_entries", {"sessionId": self._id, "limit": 1})
        first = page["entries"]
        data = first[0].get("data") if first else None
        key = data.get("key") if isinstance(data, dict) else None
        if not first or first[0].get("customType") != _KEY or key != self.session_id:
            raise KeyTaken(f"the session {self._id} is not that of the key {self.session_id!r}")
        self._root = first[0]["id"]
        self._is_open = True
        for _, item in self._items():
            self._note_call(item)
        return True

    def _create(self) -> None:
        where = {} if self._cwd is None else {"cwd": self._cwd}
        try:
            self._client.create_session(session_id=self._id, **where)  # type: ignore[arg-type]
        except TreelinedError as error:
            # Another process has created it first.
            if error.kind != "sessionExists":
                raise
            self._client.open_session(session_id=self._id)
            return
        head = {"type": "custom", "customType": _KEY, "data": {"key": self.session_id}}
        self._client.append_entries(entries=[head], session_id=self._id)

    def _items(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the entries and items of the active path."""
        found = []
        since: str | None = None
        while True:
            more = {} if since is None else {"since": since}
            page = self._client.call("get_path", {"sessionId": self._id, "maxBytes": _PAGE, **more})
            entries = page["entries"]
            found += [(entry, item) for entry in entries if (item := item_of(entry)) is not None]
            if not page.get("nextCursor") or not entries:
                return found
            since = entries[-1]["id"]

    def _note_call(self, item: dict[str, Any]) -> None:
        if item.get("type") == "function_call":
            self._calls[str(item.get("call_id"))] = str(item.get("name", ""))


def _shown(content: Any) -> str:  # noqa: ANN401
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
