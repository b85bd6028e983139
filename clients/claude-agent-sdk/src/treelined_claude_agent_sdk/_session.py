"""One session, which has the records of one key."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelined import TreelinedError

from treelined_claude_agent_sdk import _entries, _keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from treelined import Client

Json = dict[str, Any]

_PAGE = 8 << 20
"""The most bytes of a page of entries."""
_ATTEMPTS = 8
_TOOLS = 1_000
"""The most calls without a result whose tools are remembered."""
_ABSENT = ("sessionNotFound", "sessionDeleted")


class KeyTaken(Exception):  # noqa: N818
    """The session with this id belongs to another key."""


@dataclass
class Session:
    """An open session."""

    client: Client
    parts: _keys.Parts
    id: str
    path: str | None
    is_new: bool = False
    turn: _entries.Turn = field(default_factory=_entries.Turn)
    appended: int = 0
    """The number of records that were appended since the summary was stored."""

    def is_there(self) -> bool:
        """Return whether the file exists. Another process may have deleted it."""
        return self.path is None or Path(self.path).exists()

    def close(self) -> None:
        """Close the session in the daemon."""
        with contextlib.suppress(TreelinedError):
            self.client.call("close_session", {"sessionId": self.id})

    def pages(self, since: str | None = None, known: int = 0, **which: str) -> Iterator[list[Json]]:
        """Yield the entries in file order, page by page.

        `known` is the number of entries up to `since`. If the file has another number of entries
        there, as when those of another machine have come among them, it fails with `treeChanged`.
        """
        while True:
            params: Json = {"sessionId": self.id, "maxBytes": _PAGE, "since": since, **which}
            if since is not None and not which:
                params["known"] = known
            page = self.client.call("get_entries", params)
            entries: list[Json] = page["entries"]
            if not entries:
                return
            since = entries[-1]["id"]
            known += len(entries)
            yield entries
            if not page.get("nextCursor"):
                return

    def records(self, entries: Sequence[Json]) -> list[Any]:
        """Return the records of these entries. The entries must not be used afterwards."""
        found = (_entries.record_of(entry, self.parts[1]) for entry in entries)
        return [record for record in found if record is not None]

    def append(self, records: Sequence[Json]) -> None:
        """Append all of the records or none. Leave out those whose `uuid` is already stored."""
        batch = _Batch(self, list(_once(records)))
        for attempt in range(1, _ATTEMPTS + 1):
            if not batch.records:
                return
            try:
                self.client.call("append_entries", batch.params())
            except TreelinedError as error:
                if attempt == _ATTEMPTS or not batch.mend(error):
                    raise
            else:
                self.is_new, self.turn = False, batch.turn
                self.appended += len(batch.records)
                return

    def has(self, name: str) -> bool:
        """Return whether an entry has this id."""
        try:
            self.client.call("get_entry", {"sessionId": self.id, "entryId": name})
        except TreelinedError as error:
            if error.kind != "entryNotFound":
                raise
            return False
        return True


class _Batch:
    """The records of one append."""

    def __init__(self, session: Session, records: list[Json]) -> None:
        self.session = session
        self.records = records
        self.unknown: set[str] = set()
        self.as_text = False
        self.turn = session.turn

    def params(self) -> Json:
        session, entries = self.session, []
        self.turn = session.turn.copy()
        if session.is_new:
            data = {"key": _keys.text_of(session.parts)}
            head = {"type": "custom", "id": _keys.HEAD, "customType": _keys.HEAD_TYPE, "data": data}
            entries.append(head)
        for record in self.records:
            entry = _entries.entry_of(record, session.parts[1], self.turn, self.unknown)
            if self.as_text and _entries.is_deep(record):
                entry = _entries.as_text(entry, record)
            entries.append(entry)
        for call in list(self.turn.tools)[:-_TOOLS]:
            del self.turn.tools[call]
        return {"sessionId": session.id, "entries": entries}

    def mend(self, error: TreelinedError) -> bool:
        """Change the batch so that this error does not occur again, if possible; return whether."""
        if error.kind == "entryNotFound" and not self.unknown:
            # The parent was never appended, so its child follows the last written record.
            names = {_keys.HEAD} if self.session.is_new else set()
            for entry in self.params()["entries"]:
                parent = entry.get("parentId")
                if parent is not None and parent not in names and not self._has(parent):
                    self.unknown.add(parent)
                names.add(entry.get("id"))
            return bool(self.unknown)
        if error.kind == "duplicateEntryId":
            # Stored records do not change, even if a new record has other content.
            before = len(self.records)
            self.records = [
                record
                for record in self.records
                if (name := _keys.entry_id(record.get("uuid"))) is None or not self._has(name)
            ]
            return len(self.records) < before
        if error.kind == "entryInvalid" and not self.as_text:
            self.as_text = True
            return any(_entries.is_deep(record) for record in self.records)
        return False

    def _has(self, name: str) -> bool:
        return not self.session.is_new and self.session.has(name)


def open_existing(client: Client, parts: _keys.Parts, options: Json) -> Session | None:
    """Open the session of a key; None if there is none. Raises KeyTaken."""
    name = _keys.session_of(parts)
    try:
        opened = client.call("open_session", {"sessionId": name, **options})
    except TreelinedError as error:
        if error.kind not in _ABSENT:
            raise
        return None
    session = Session(client, parts, name, opened["session"].get("path"))
    try:
        head = client.call("get_entry", {"sessionId": name, "entryId": _keys.HEAD})["entry"]
    except TreelinedError as error:
        if error.kind != "entryNotFound":
            raise
        head = {}
    if _keys.key_in(head, name) != parts:
        session.close()
        raise KeyTaken(f"the session {name} is not that of the key {_keys.text_of(parts)}")
    return session


def create(client: Client, parts: _keys.Parts, records: Sequence[Json], options: Json) -> Session:
    """Open a new session. Its file is written with the first records."""
    name = _keys.session_of(parts)
    params: Json = {"sessionId": name, "write": "first-entry", **options}
    cwds = (record.get("cwd") for record in records)
    cwd = next((cwd for cwd in cwds if isinstance(cwd, str) and cwd), None)
    if cwd is not None:
        params["cwd"] = cwd
    if len(parts) > 2:  # noqa: PLR2004
        spawner: Json = {"sessionId": _keys.session_of(parts[:2])}
        calls = (record.get("toolUseId") for record in records)
        call = next((call for call in calls if isinstance(call, str) and call), None)
        if call is not None:
            spawner["toolCallId"] = call
        params["spawnedBy"] = spawner
    elif source := _source(records):
        params["parentSession"] = _keys.session_of((parts[0], source))
    opened = client.call("create_session", params)
    return Session(client, parts, name, opened["session"].get("path"), is_new=True)


def _source(records: Sequence[Json]) -> str | None:
    """Return the session from which these records were forked."""
    for record in records:
        source = record.get("forkedFrom")
        name = source.get("sessionId") if isinstance(source, dict) else None
        if isinstance(name, str):
            return name
    return None


def _once(records: Sequence[Json]) -> Iterator[Json]:
    """Yield the first record of each `uuid`, and all records without a `uuid`."""
    seen = set()
    for record in records:
        name = _keys.entry_id(record.get("uuid"))
        if name is None or name not in seen:
            seen.add(name)
            yield record
