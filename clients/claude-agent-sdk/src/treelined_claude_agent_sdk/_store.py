"""The session store."""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import anyio.to_thread
from claude_agent_sdk import SessionStore, fold_session_summary
from treelined import Client, TreelinedError

from treelined_claude_agent_sdk import _keys, _session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )
    from typing_extensions import Self

_T = TypeVar("_T")
_SUMMARY = "claude-agent-sdk.summary.python"
"""The type of the entries with summaries. Those of the SDK for JavaScript have other members."""
_OPEN = 64
"""The most sessions that stay open."""
_KNOWN = 65_536
"""The most sessions whose keys are kept in memory. The same number of summaries is kept."""
_EVERY = 256
"""The number of records after which the summary is stored again."""
_GONE = ("sessionNotFound", "sessionDeleted", "sessionReplaced", "sessionExists")


@dataclass
class _Folded:
    """The summary of a main transcript, up to one of its entries."""

    path: str | None
    last: str | None = None
    count: int = 0
    """The number of entries up to `last`."""
    summary: SessionSummaryEntry | None = None
    file: _File | None = None


class _File(NamedTuple):
    """The file of a session at the last look."""

    path: str
    mtime: int
    """In nanoseconds."""
    size: int

    @property
    def milliseconds(self) -> int:
        return self.mtime // 1_000_000


class TreelinedSessionStore(SessionStore):
    """A store of sessions as trees. It passes the suite of the SDK.

    `client` is the client of treelined to use, which stays open. Without one the store starts a
    daemon, which `close` ends. `durability` is the durability of appends (`os`, `interval`,
    `always`).

    Calls take effect in the order in which they are made, even if they are cancelled.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        durability: Literal["os", "interval", "always"] | None = None,
    ) -> None:
        self._given = client
        self._own: Client | None = None
        self._options = {} if durability is None else {"durability": durability}
        self._sessions: OrderedDict[_keys.Parts, _session.Session] = OrderedDict()
        self._keys: dict[str, _keys.Parts] = {}
        self._folded: dict[_keys.Parts, _Folded] = {}
        # A single thread keeps the calls in order, and its data needs no lock.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treelined")

    async def __aenter__(self) -> Self:
        """Return the store."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await anyio.to_thread.run_sync(self.close)

    def close(self) -> None:
        """Wait for running calls, and end the daemon if the store has started it."""
        self._worker.shutdown()
        if self._own is not None:
            self._own.close()
            self._own = None

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append all of the entries or none. Leave out those whose `uuid` is already stored."""
        parts, records = _keys.parts_of(key), [dict(entry) for entry in entries]
        if records:
            await self._run(lambda: self._append(parts, records))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries in the order in which they were stored; None if there are none."""
        parts = _keys.parts_of(key)
        return await self._run(lambda: self._load(parts))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the main transcripts of a project."""
        return await self._run(
            lambda: [
                {"session_id": parts[1], "mtime": file.milliseconds}
                for parts, file in self._project(project_key)
            ]
        )

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of the main transcripts of a project."""
        return await self._run(
            lambda: [
                summary
                for parts, file in self._project(project_key)
                if (summary := self._summary(parts, file)) is not None
            ]
        )

    async def delete(self, key: SessionKey) -> None:
        """Move a transcript to the trash, the transcripts of its subagents first."""
        parts = _keys.parts_of(key)

        def delete() -> None:
            for sub in self._subagents(parts) if len(parts) == 2 else []:  # noqa: PLR2004
                self._delete(sub)
            self._delete(parts)

        await self._run(delete)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the sub-paths of the subagents of a session."""
        parts = (key["project_key"], key["session_id"])
        return await self._run(lambda: [sub[2] for sub in self._subagents(parts)])

    async def _run(self, job: Callable[[], _T]) -> _T:
        # The job is queued before the first `await`, so a cancelled call is completed too.
        future = self._worker.submit(job)
        return await anyio.to_thread.run_sync(future.result)

    @property
    def _client(self) -> Client:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = Client().__enter__()
        return self._own

    def _open(self, parts: _keys.Parts) -> _session.Session | None:
        session = self._sessions.get(parts)
        if session is not None and not session.is_there():
            self._forget(parts)
            session = None
        if session is None:
            session = _session.open_existing(self._client, parts, self._options)
        if session is not None:
            self._keep(session)
        return session

    def _keep(self, session: _session.Session) -> None:
        self._sessions[session.parts] = session
        self._sessions.move_to_end(session.parts)
        if len(self._sessions) > _OPEN:
            self._sessions.popitem(last=False)[1].close()

    def _forget(self, parts: _keys.Parts) -> None:
        self._folded.pop(parts, None)
        if (session := self._sessions.pop(parts, None)) is not None:
            session.close()

    def _append(self, parts: _keys.Parts, records: list[dict[str, Any]]) -> None:
        try:
            self._append_once(parts, records)
        except TreelinedError as error:
            # Another process has deleted the session, or has created it first.
            if error.kind not in _GONE:
                raise
            self._append_once(parts, records)

    def _append_once(self, parts: _keys.Parts, records: list[dict[str, Any]]) -> None:
        session = self._open(parts)
        if session is None:
            session = _session.create(self._client, parts, records, self._options)
        try:
            session.append(records)
        except BaseException:
            self._sessions.pop(parts, None)
            self._folded.pop(parts, None)
            session.close()
            raise
        self._keep(session)
        if session.appended >= _EVERY and len(parts) == 2:  # noqa: PLR2004
            # The records are stored. Without the summary, the next reader only reads more records.
            with contextlib.suppress(Exception):
                self._store_summary(session)

    def _load(self, parts: _keys.Parts) -> list[SessionStoreEntry] | None:
        if (session := self._open(parts)) is None:
            return None
        return [record for page in session.pages() for record in session.records(page)]

    def _delete(self, parts: _keys.Parts) -> None:
        session = self._open(parts)
        if session is None:
            return
        del self._sessions[parts]
        self._folded.pop(parts, None)
        try:
            self._client.call("delete_session", {"sessionId": session.id})
        except TreelinedError as error:
            session.close()
            if error.kind not in _GONE:
                raise

    def _project(self, project: str) -> Iterator[tuple[_keys.Parts, _File]]:
        """Yield the keys of the main transcripts, and their files."""
        for row in self._rows({}):
            parts = self._key_of(row)
            if parts is not None and parts[0] == project and len(parts) == 2:  # noqa: PLR2004
                with contextlib.suppress(OSError):
                    found = Path(row["path"]).stat()
                    yield parts, _File(row["path"], found.st_mtime_ns, found.st_size)

    def _subagents(self, parts: _keys.Parts) -> list[_keys.Parts]:
        rows = self._rows({"spawnedBy": _keys.session_of(parts)})
        keys = [self._key_of(row) for row in rows]
        return [key for key in keys if key is not None and len(key) > 2 and key[:2] == parts]  # noqa: PLR2004

    def _rows(self, which: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of all sessions that may belong to a key."""
        rows: dict[str, dict[str, Any]] = {}
        params = {"archived": True, "local": True, "sort": "created", **which}
        page: dict[str, Any] = {"nextCursor": None}
        while "nextCursor" in page:
            try:
                page = self._client.call("list_sessions", {**params, "cursor": page["nextCursor"]})
            except TreelinedError as error:
                # The last row of the previous page was deleted in the meantime.
                if error.kind != "invalidParams" or page["nextCursor"] is None:
                    raise
                page = {"nextCursor": None}
                rows.clear()
                continue
            rows.update((row["sessionId"], row) for row in page["sessions"])
        return [row for name, row in rows.items() if name.startswith("k-")]

    def _key_of(self, row: dict[str, Any]) -> _keys.Parts | None:
        """Return the key of a session, from the first lines of its file."""
        name = row["sessionId"]
        parts = self._keys.get(name)
        if parts is None:
            with contextlib.suppress(OSError):
                parts = _read_key(row["path"], name)
        if parts is not None:
            if len(self._keys) >= _KNOWN:
                self._keys.clear()
            self._keys[name] = parts
        return parts

    def _summary(self, parts: _keys.Parts, file: _File) -> SessionSummaryEntry | None:
        """Return the summary of the file at this state, or a newer one."""
        folded = self._folded.get(parts)
        if folded is None or folded.file != file:
            session = self._open(parts)
            if session is None:
                return None
            folded = self._fold(session)
            folded.file = file
        return folded.summary and {**folded.summary, "mtime": file.milliseconds}

    def _fold(self, session: _session.Session) -> _Folded:
        """Add the records that any process has stored since the last time to the summary."""
        folded = self._folded.get(session.parts)
        if folded is None or folded.path != session.path:
            folded = _stored_summary(session)
        try:
            _fold_on(session, folded)
        except TreelinedError as error:
            # The last entry of the summary was removed from the file, or the entries of another
            # machine have come among the entries of the summary.
            if error.kind not in ("entryNotFound", "treeChanged"):
                raise
            folded = _Folded(session.path)
            _fold_on(session, folded)
        if len(self._folded) >= _KNOWN:
            self._folded.clear()
        self._folded[session.parts] = folded
        return folded

    def _store_summary(self, session: _session.Session) -> None:
        """Store the summary beside the conversation. It contains the id of its last entry."""
        folded = self._fold(session)
        if folded.summary is not None:
            data = {"after": folded.last, "count": folded.count, "data": folded.summary["data"]}
            entry = {"type": "custom", "customType": _SUMMARY, "data": data}
            where = {"sessionId": session.id, "parentId": _keys.HEAD, "keepLeaf": True}
            session.client.call("append_entries", {**where, "entries": [entry]})
        session.appended = 0


def _stored_summary(session: _session.Session) -> _Folded:
    """Return the newest summary in the file."""
    newest: dict[str, Any] = {}
    for page in session.pages(customType=_SUMMARY):
        newest = page[-1].get("data", {})
    after, count, data = newest.get("after"), newest.get("count"), newest.get("data")
    if not isinstance(after, str) or type(count) is not int or not isinstance(data, dict):
        return _Folded(session.path)
    summary: SessionSummaryEntry = {
        "session_id": session.parts[1],
        "mtime": 0,
        "data": data,
    }
    return _Folded(session.path, after, count, summary)


def _fold_on(session: _session.Session, folded: _Folded) -> None:
    key: SessionKey = {"project_key": session.parts[0], "session_id": session.parts[1]}
    for page in session.pages(folded.last, folded.count):
        folded.last = page[-1]["id"]
        folded.count += len(page)
        if records := session.records(page):
            folded.summary = fold_session_summary(folded.summary, key, records)


def _read_key(path: str, name: str) -> _keys.Parts | None:
    """Return the key in the first entry of a file, on the second line or soon after."""
    with Path(path).open("rb") as file:
        for _ in range(8):
            line = file.readline(1 << 20)
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("id") == _keys.HEAD:
                return _keys.key_in(entry, name)
    return None
