"""Tests of the store: the suite of the SDK, and further tests."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from claude_agent_sdk import (
    InMemorySessionStore,
    delete_session_via_store,
    fold_session_summary,
    fork_session_via_store,
    get_session_messages_from_store,
    get_subagent_messages_from_store,
    list_sessions_from_store,
    list_subagents_from_store,
    project_key_for_directory,
    rename_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance
from conftest import answered, called, result, said, text
from treelined import Client, TreelinedError

from treelined_claude_agent_sdk import KeyTaken, TreelinedSessionStore, _store
from treelined_claude_agent_sdk._keys import parts_of, session_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent.parent
KEY: Any = {"project_key": "p", "session_id": "s"}
SUB: Any = {**KEY, "subpath": "subagents/agent-1"}
ID = session_of(("p", "s"))


def mark(number: int, **more: Any) -> Any:
    return {"type": "mark", "n": number, **more}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[TreelinedSessionStore, TreelinedSessionStore]]:
    """Return two stores, of two daemons with the same session directory."""
    folder = str(tmp_path / "sessions")
    with Client(session_dir=folder) as first, Client(session_dir=folder) as second:
        yield TreelinedSessionStore(first), TreelinedSessionStore(second)


async def test_the_suite_of_the_sdk(tmp_path: Path) -> None:
    clients = []

    def make_store() -> TreelinedSessionStore:
        clients.append(Client(session_dir=str(tmp_path / str(len(clients)))).__enter__())
        return TreelinedSessionStore(clients[-1])

    try:
        await run_session_store_conformance(make_store)
    finally:
        for client in clients:
            client.close()
    # There is one client for each contract, and one for an inspection. So no contract was skipped.
    assert len(clients) == 15


class Model(InMemorySessionStore):
    """The SDK's own store, but each `uuid` is stored once, as the SDK requires of other stores."""

    async def append(self, key: Any, entries: list[Any]) -> None:
        seen = {entry.get("uuid") for entry in self.get_entries(key)} - {None}
        kept = []
        for entry in entries:
            if entry.get("uuid") not in seen:
                kept.append(entry)
            seen |= {entry.get("uuid")} - {None}
        if kept:
            await super().append(key, kept)


async def test_the_store_does_as_that_of_the_sdk_does(
    two: tuple[TreelinedSessionStore, TreelinedSessionStore],
) -> None:
    """Random calls from two processes have the results that the store in memory has."""
    chance = random.Random(11)  # noqa: S311
    model = Model()
    keys: list[Any] = [
        {"project_key": project, "session_id": session, **sub}
        for project in ("p", "p q")
        for session in ("s", "t")
        for sub in ({}, {"subpath": "subagents/agent-1"}, {"subpath": "x"})
    ]
    for turn in range(250):
        store, key = chance.choice(two), chance.choice(keys)
        act = chance.random()
        if act < 0.7:
            records: list[Any] = []
            for number in range(chance.randint(1, 4)):
                uuid = f"u{chance.randint(0, 30)}"
                parent = chance.choice([None, f"u{chance.randint(0, 30)}"])
                made = said(uuid, parent, f"{turn} {number}", customTitle=f"title {turn}")
                records.append(chance.choice([made, mark(turn)]))
            await store.append(key, records)
            await model.append(key, records)
        elif act < 0.8:
            await store.delete(key)
            await model.delete(key)
        store = chance.choice(two)
        assert json.dumps(await store.load(key)) == json.dumps(await model.load(key))
        main: Any = {"project_key": key["project_key"], "session_id": key["session_id"]}
        assert sorted(await store.list_subkeys(main)) == sorted(await model.list_subkeys(main))
        listed, summaries = await told(store, key["project_key"])
        assert (listed, summaries) == await told(model, key["project_key"])


async def told(store: Any, project: str) -> tuple[Any, Any]:
    """Return the sessions and summaries of a project, without times."""
    summaries = await store.list_session_summaries(project)
    listed = await store.list_sessions(project)
    times = {row["session_id"]: row["mtime"] for row in listed}
    assert all(row["mtime"] >= times[row["session_id"]] for row in summaries)
    return (
        sorted(row["session_id"] for row in listed),
        sorted((row["session_id"], json.dumps(row["data"])) for row in summaries),
    )


async def test_a_repeated_append_stores_nothing_twice(
    two: tuple[TreelinedSessionStore, TreelinedSessionStore],
) -> None:
    one, other = two
    first = [said("a", None, "one"), said("b", "a", "two")]
    await one.append(KEY, first)
    await one.append(KEY, first)
    await other.append(KEY, [*first, said("c", "b", "three"), said("c", "b", "again")])
    # A stored entry is never changed.
    await one.append(KEY, [said("b", "a", "another two"), said("d", "c", "four")])
    records: Any = await other.load(KEY)
    assert [record["message"]["content"] for record in records] == ["one", "two", "three", "four"]


async def test_an_append_is_all_or_nothing(client: Client) -> None:
    store = TreelinedSessionStore(client)
    for _ in range(2):
        with pytest.raises(ValueError, match="JSON"):
            await store.append(KEY, [mark(1), mark(2, bad=float("nan"))])
        assert await store.load(KEY) is None
        assert await store.list_sessions("p") == []
    await store.append(KEY, [mark(1)])
    with pytest.raises(ValueError, match="JSON"):
        await store.append(KEY, [mark(2), mark(3, bad=float("inf"))])
    assert await store.load(KEY) == [mark(1)]


async def test_a_session_is_made_once_by_two_processes(
    two: tuple[TreelinedSessionStore, TreelinedSessionStore],
) -> None:
    for number in range(5):
        key: Any = {**KEY, "session_id": f"new {number}"}
        await asyncio.gather(*(store.append(key, [mark(at)]) for at, store in enumerate(two)))
        records: Any = await two[0].load(key)
        assert sorted(record["n"] for record in records) == [0, 1]


async def test_appends_are_in_the_order_of_their_calls(client: Client) -> None:
    store = TreelinedSessionStore(client)
    calls = [asyncio.ensure_future(store.append(KEY, [mark(n)])) for n in range(30)]
    await asyncio.sleep(0)
    calls[20].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    # The cancelled call was completed too, in its order.
    assert await store.load(KEY) == [mark(n) for n in range(30)]


def test_the_store_works_in_trio(tmp_path: Path) -> None:
    async def use() -> None:
        with Client(session_dir=str(tmp_path)) as client:
            store = TreelinedSessionStore(client)
            await store.append(KEY, [mark(1)])
            assert await store.load(KEY) == [mark(1)]

    anyio.run(use, backend="trio")


async def test_branches_are_those_of_the_transcript(client: Client) -> None:
    store = TreelinedSessionStore(client)
    await store.append(KEY, [said("a", None, "one"), answered("b", "a", text("1"))])
    await store.append(KEY, [said("c", "b", "by plane"), answered("d", "c", text("2"))])
    await store.append(KEY, [mark(1)])
    await store.append(KEY, [said("e", "b", "by train"), answered("f", "e", text("3"))])
    client.open_session(session_id=ID)
    rows = client.list_branches(session_id=ID)["branches"]
    assert [(row["name"], row["forkId"], row["isActive"]) for row in rows] == [
        ("by plane", "b", False),
        ("by train", "b", True),
    ]
    # A child must not be lost because its parent was never appended.
    await store.append(KEY, [said("h", "lost", "and then"), said("i", "h", "more")])
    path = [entry["id"] for entry in client.get_path(session_id=ID)["entries"]]
    assert path == ["k-key", "a", "b", "e", "f", "h", "i"]
    records: Any = await store.load(KEY)
    assert records[-2]["parentUuid"] == "lost"


async def test_calls_at_once_are_no_branches(client: Client) -> None:
    """Claude writes one line for each call, and puts each result below its call."""
    store = TreelinedSessionStore(client)
    calls = [answered(f"a{n}", "u" if n == 1 else "a1", called(f"t{n}", "Read")) for n in (1, 2)]
    for call in calls:
        call["message"]["id"] = "msg_1"
    results = [result(f"r{n}", f"a{n}", f"t{n}", "x") for n in (1, 2)]
    note = {"type": "attachment", "uuid": "n", "parentUuid": "a1", "attachment": {"type": "hook"}}
    last = answered("a3", "r1", text("Both."))
    records = [said("u", None, "Look."), *calls, note, *results, last]
    await store.append(KEY, records[:3])
    await store.append(KEY, records[2:5])  # These records overlap.
    await store.append(KEY, records[5:])
    assert await store.load(KEY) == records
    client.open_session(session_id=ID)
    path = [entry["id"] for entry in client.get_path(session_id=ID)["entries"]]
    assert path == ["k-key", "u", "a1", "a2", "n", "r1", "r2", "a3"]
    assert len(client.list_branches(session_id=ID)["branches"]) == 1
    # A prompt is below the parent that it names.
    await store.append(KEY, [said("v", "a1", "Only the first.")])
    rows = client.list_branches(session_id=ID)["branches"]
    assert [row["forkId"] for row in rows] == ["a1", "a1"]


async def test_a_compaction_goes_on_in_its_branch(client: Client) -> None:
    store = TreelinedSessionStore(client)
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    await store.append(KEY, [said("a", None, "one"), {**boundary, "logicalParentUuid": "a"}])
    await store.append(KEY, [said("c", "b", "So far.", isCompactSummary=True)])
    await store.append(KEY, [said("d", "c", "go on")])
    client.open_session(session_id=ID)
    context: Any = client.get_context(session_id=ID)["messages"]
    assert [message["role"] for message in context] == ["compactionSummary", "user"]
    assert len(client.list_branches(session_id=ID)["branches"]) == 1


async def test_keys_are_apart_whatever_their_texts_are(client: Client) -> None:
    store = TreelinedSessionStore(client)
    odd = ["a", "A", "a/b", "", "k-1", "ключ", "\ud800", "\udfff", "x" * 300, 'a","b', "["]
    keys: list[Any] = [
        {"project_key": project, "session_id": session} for project in odd for session in odd[:6]
    ]
    keys += [{"project_key": "a", "session_id": "a", "subpath": sub} for sub in odd if sub]
    for number, key in enumerate(keys):
        assert await store.load(key) is None
        await store.append(key, [mark(number)])
    for number, key in enumerate(keys):
        assert await store.load(key) == [mark(number)]
    for project in odd:
        listed = [row["session_id"] for row in await store.list_sessions(project)]
        assert sorted(listed) == sorted(odd[:6])
    subs = await store.list_subkeys({"project_key": "a", "session_id": "a"})
    assert sorted(subs) == sorted(odd[:3] + odd[4:])
    with pytest.raises(ValueError, match="leave it out"):
        await store.load({**KEY, "subpath": ""})


def test_an_id_is_the_same_in_every_language() -> None:
    """The ids are the same as in the tests of `typescript`."""
    assert (
        text_of(("p é\x7f", "\ud800", "\U0001f600"))
        == '["p \\u00e9\\u007f","\\ud800","\\ud83d\\ude00"]'
    )
    # JSON joins the two halves of a character.
    halves, whole = ("\ud83d\ude00", "s"), ("\U0001f600", "s")
    assert parts_of({"project_key": halves[0], "session_id": halves[1]}) == whole
    assert session_of(halves) == session_of(whole)


async def test_a_session_of_another_key_is_refused(client: Client) -> None:
    client.create_session(session_id=ID, write="now")
    client.append_message(message={"role": "user", "content": "x"}, session_id=ID)
    store = TreelinedSessionStore(client)
    with pytest.raises(KeyTaken, match=ID):
        await store.append(KEY, [mark(1)])
    with pytest.raises(KeyTaken):
        await store.load(KEY)
    with pytest.raises(KeyTaken):
        await store.delete(KEY)
    assert await store.list_sessions("p") == []


async def test_others_may_work_in_a_session_and_copy_it(client: Client) -> None:
    store = TreelinedSessionStore(client)
    records = [said("a", None, "one"), answered("b", "a", text("1"))]
    await store.append(KEY, records)
    client.open_session(session_id=ID)
    client.append_message(message={"role": "user", "content": "by hand"}, session_id=ID)
    client.append_label(target_id="a", label="begin", session_id=ID)
    client.set_leaf(leaf_id="a", session_id=ID)
    client.cherry_pick(entry_ids=["b"], session_id=ID)
    client.fork_session(entry_id="b", session_id=ID)
    assert await store.load(KEY) == records
    assert [row["session_id"] for row in await store.list_sessions("p")] == ["s"]


async def test_deleted_sessions_are_in_the_trash(
    two: tuple[TreelinedSessionStore, TreelinedSessionStore],
) -> None:
    one, other = two
    for key in (KEY, SUB, {**KEY, "subpath": "x"}):
        await one.append(key, [mark(1)])
    assert await other.load(KEY) == [mark(1)]
    await one.delete({**KEY, "subpath": "x"})
    assert await other.list_subkeys(KEY) == [SUB["subpath"]]
    await one.delete(KEY)
    await one.delete(KEY)
    assert await other.load(KEY) is None
    assert await other.load(SUB) is None
    assert len(one._client.list_trash()["sessions"]) == 3  # noqa: SLF001
    # The other process had the session open, and creates it again.
    await other.append(KEY, [mark(2)])
    assert await one.load(KEY) == [mark(2)]
    await other.delete(KEY)
    one._client.restore_session(session_id=session_of(("p", "s", SUB["subpath"])))  # noqa: SLF001
    # The next deletion removes the rest of an interrupted one.
    await one.delete(KEY)
    assert await one.load(SUB) is None


async def test_a_summary_is_that_of_all_records_of_all_processes(
    two: tuple[TreelinedSessionStore, TreelinedSessionStore], tmp_path: Path
) -> None:
    chance = random.Random(3)  # noqa: S311
    for number in range(600):
        more = {"gitBranch": f"b{number}"} if number % 50 == 0 else {}
        await chance.choice(two).append(KEY, [said(f"u{number}", None, f"prompt {number}", **more)])
    with Client(session_dir=str(tmp_path / "sessions")) as client:
        for store in (TreelinedSessionStore(client), *two):
            (summary,) = await store.list_session_summaries("p")
            records: Any = await store.load(KEY)
            assert len(records) == 600
            assert summary["data"] == fold_session_summary(None, KEY, records)["data"]
    stored = [entry for entry in entries(two[0]) if entry.get("customType", "").endswith("python")]
    # The summary was stored in between, so that a new process needs to read only a few records.
    assert len(stored) >= 2


async def test_a_summary_has_the_records_that_came_among_known_ones(tmp_path: Path) -> None:
    """Those of another machine stand in front of the own ones that waited for the team.

    The list once read only what came after the last entry that it knew.
    """
    folder = tmp_path / "sessions"
    with Client(session_dir=str(folder)) as here:
        store = TreelinedSessionStore(here)
        await store.append(KEY, [said("u1", None, "first")])
        (path,) = folder.glob("*/*.jsonl")
        before = path.read_text(encoding="utf-8")
        await store.append(KEY, [said("u2", "u1", "ours")])
        await store.list_session_summaries("p")
        ours = path.read_text(encoding="utf-8").removeprefix(before)
        title = {"type": "custom-title", "customTitle": "Theirs", "sessionId": "s"}
        with Client(session_dir=str(folder)) as there:
            path.write_text(before, encoding="utf-8")
            await TreelinedSessionStore(there).append(KEY, [title])
        theirs = path.read_text(encoding="utf-8").removeprefix(before)
        made = tmp_path / "made"
        made.write_text(before + theirs + ours, encoding="utf-8")
        made.replace(path)
        (summary,) = await store.list_session_summaries("p")
        records: Any = await store.load(KEY)
        assert "Theirs" in repr(records)
        assert summary["data"] == fold_session_summary(None, KEY, records)["data"]


async def test_a_summary_that_cannot_be_made_fails_no_append(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would make the SDK append the records again."""
    store = TreelinedSessionStore(client)

    def fold(*_: Any) -> Any:
        raise TypeError

    monkeypatch.setattr(_store, "fold_session_summary", fold)
    await store.append(KEY, [mark(number) for number in range(300)])
    assert len(await store.load(KEY) or []) == 300


def entries(store: TreelinedSessionStore) -> list[Any]:
    client = store._client  # noqa: SLF001
    client.open_session(session_id=ID)
    return client.get_entries(session_id=ID)["entries"]


async def test_the_functions_of_the_sdk_work_on_the_store(client: Client, tmp_path: Path) -> None:
    store, where = TreelinedSessionStore(client), str(tmp_path)
    project, session = project_key_for_directory(where), "0199a1f2-7c3e-4d10-9b55-5a0c1b7f2d31"
    key: Any = {"project_key": project, "session_id": session}
    ids = [f"0199a1f2-7c3e-4d10-9b55-00000000000{n}" for n in range(4)]
    await store.append(
        key,
        [
            said(ids[0], None, "Plan a trip.", sessionId=session),
            answered(ids[1], ids[0], text("Where?"), sessionId=session),
        ],
    )
    agent: Any = {**key, "subpath": "subagents/agent-7"}
    await store.append(
        agent,
        [
            {"type": "agent_metadata", "agentType": "x", "toolUseId": "t1"},
            said(ids[2], None, "Look.", isSidechain=True, agentId="7"),
            answered(ids[3], ids[2], text("Seen."), isSidechain=True, agentId="7"),
        ],
    )
    await rename_session_via_store(store, session, "A trip", where)
    (info,) = await list_sessions_from_store(store, where)
    assert (info.session_id, info.summary, info.first_prompt) == (session, "A trip", "Plan a trip.")
    messages = await get_session_messages_from_store(store, session, where)
    assert [message.uuid for message in messages] == ids[:2]
    assert await list_subagents_from_store(store, session, where) == ["7"]
    seen = await get_subagent_messages_from_store(store, session, "7", where)
    assert [message.parent_tool_use_id for message in seen] == ["t1", "t1"]

    fork = (await fork_session_via_store(store, session, where)).session_id
    assert len(await get_session_messages_from_store(store, fork, where)) == 2
    family = client.get_family(session_id=session_of((project, session)))["sessions"]
    kinds = [row["comesFrom"]["kind"] for row in family if "comesFrom" in row]
    assert sorted(kinds) == ["fork", "subagent"]

    await delete_session_via_store(store, session, where)
    assert [row.session_id for row in await list_sessions_from_store(store, where)] == [fork]
    assert await store.load(agent) is None


async def test_many_sessions_of_one_store(client: Client) -> None:
    """There are more sessions than stay open in the daemon."""
    store = TreelinedSessionStore(client)
    for number in range(150):
        await store.append({**KEY, "session_id": f"s{number}"}, [mark(number)])
    for number in (0, 149, 70):
        key: Any = {**KEY, "session_id": f"s{number}"}
        await store.append(key, [mark(-number)])
        assert await store.load(key) == [mark(number), mark(-number)]
    assert len(await store.list_sessions("p")) == 150
    assert len(store._sessions) <= 64  # noqa: SLF001


def test_a_store_starts_and_ends_a_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELINED_SESSION_DIR", str(tmp_path))

    async def use(expected: Any) -> None:
        async with TreelinedSessionStore(durability="always") as store:
            assert await store.load(KEY) == expected
            await store.append(KEY, [mark(1)])
        with pytest.raises(RuntimeError):
            await store.load(KEY)

    asyncio.run(use(None))
    asyncio.run(use([mark(1)]))


async def test_an_error_of_the_daemon_is_raised(client: Client, tmp_path: Path) -> None:
    store = TreelinedSessionStore(client)
    await store.append(KEY, [mark(1)])
    (file,) = (tmp_path / "sessions").rglob("*.jsonl")
    client.close()
    with pytest.raises((TreelinedError, OSError)):
        await store.append(KEY, [mark(2)])
    assert "mark" in file.read_text()


def test_the_example_shows_the_branches_of_the_readme(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, HERE / "example.py"],
        env={**os.environ, "TREELINED_SESSION_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.strip() in (HERE / "README.md").read_text(), ran.stdout
