"""Records are restored unchanged, and treelined shows them by their kinds."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import answered, called, result, said, text

from treelined_claude_agent_sdk import TreelinedSessionStore
from treelined_claude_agent_sdk._entries import Turn, entry_of, record_of
from treelined_claude_agent_sdk._keys import session_of, text_of

if TYPE_CHECKING:
    from treelined import Client

FIXTURES = Path(__file__).parents[3] / "tests" / "data" / "import" / "claude-code"
SHARED = FIXTURES.parents[1] / "stores" / "claude-agent-sdk.json"
KEY: Any = {"project_key": "-home-ada-project", "session_id": "s"}
HERE = session_of(("-home-ada-project", "s"))
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}

RECORDS: list[Any] = [
    said("u1", None, "Fix the test."),
    answered(
        "a1",
        "u1",
        {"type": "thinking", "thinking": "Read it first.", "signature": "c2ln"},
        text("I read it."),
        called("t1", "Read", file_path="/home/ä.rs", limit=0),
    ),
    result("r1", "a1", "t1", "fn main() {}", is_error=False),
    answered("a2", "r1", called("t2", "Bash", command="x"), {"type": "redacted_thinking"}),
    result("r2", "a2", "t2", [text("no such file"), IMAGE, {"type": "other", "text": 0}]),
    result("r3", "a2", "t2", None),
    {**result("r4", "a2", "t2", "42 lines"), "toolUseResult": {"stdout": "42 lines", "stderr": ""}},
    {**result("r5", "a2", "t2", "x"), "toolUseResult": {"stdout": 0}},
    said("u2", "r2", "", message={"role": "user", "content": [text("Look:"), IMAGE]}),
    said("u3", "u2", "<command-name>/clear</command-name>", isMeta=True),
    said("u4", "u3", "", message={"role": "user", "content": [text("a"), text("b")]}, isMeta=True),
    said("c1", None, "What was done.", isCompactSummary=True, logicalParentUuid="u4"),
    answered("e1", "c1", text("Overloaded."), isApiErrorMessage=True),
    {"type": "custom-title", "customTitle": "A test", "sessionId": "s"},
    {"type": "custom-title", "customTitle": " two\nlines "},
    {"type": "custom-title", "customTitle": 0},
    {"type": "tag", "tag": "", "uuid": "g", "timestamp": "2026-03-01T09:30:00.123456Z"},
    {"type": "summary", "summary": "A test", "leafUuid": "a2"},
    {
        "type": "attachment",
        "uuid": "q",
        "parentUuid": "a2",
        "attachment": {
            "type": "queued_command",
            "prompt": "And the docs.",
            "commandMode": "prompt",
        },
    },
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": 0}},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "<task/>"}},
    {"type": "x", "uuid": 0, "parentUuid": 0, "timestamp": 0, "sessionId": 0},
    {"type": "x", "uuid": 0.0},
    {"type": "x", "uuid": "root", "parentUuid": "root"},
    {"type": "x", "uuid": "k-key", "parentUuid": "k-key"},
    {"type": "x", "uuid": "ключ/ё", "parentUuid": "", "timestamp": "2026-02-30T09:30:00.000Z"},
    {"json": "[1]"},
    {"type": "user", "message": {"content": 0}},
    {"type": "user", "message": {"content": [{"type": "text", "text": 0}]}},
    {"type": "user", "message": {"content": [{"type": "text", "text": False}, text("")]}},
    {"type": "user", "message": {"content": [text("a"), 0, {"text": "b", "type": "text"}]}},
    {"type": "user", "message": {"content": [IMAGE, {"type": "image", "source": {"data": 0}}]}},
    {"type": "user", "message": {"content": [{"type": "image", "source": "x"}, text("y"), 7]}},
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": 0}, text("y")]},
    },
    {"type": "user", "message": "0", "timestamp": False},
    {"type": "assistant", "message": {"content": "", "model": 0}},
    {"type": "assistant", "message": {"content": "plain", "model": "m", "stop_reason": None}},
    {
        "type": "assistant",
        "message": {"content": [called("t", "n"), {**called("t", "n"), "id": 7}]},
    },
    {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "x", "input": 1}]}},
    {"type": "assistant", "message": {"content": []}},
]

# The orders of members in which Claude Code writes.
USUAL: Any = {
    "parentUuid": None,
    "isSidechain": False,
    "userType": "external",
    "cwd": "/home/ada/project",
    "sessionId": "s",
    "version": "2.1.207",
    "gitBranch": "main",
}
ENDS: Any = {"uuid": "e", "timestamp": "2026-03-01T09:30:00.000Z"}
ANSWER: Any = {
    "model": "claude-sonnet-4-5",
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [text("Done.")],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
ORDERED: list[Any] = [
    {**USUAL, "type": "user", "message": {"role": "user", "content": "Go on."}, **ENDS},
    {**USUAL, "slug": "x", "message": ANSWER, "requestId": "r", "type": "assistant", **ENDS},
    {
        **USUAL,
        "type": "assistant",
        "effort": "high",
        "message": ANSWER,
        "requestId": "r",
        **ENDS,
        "slug": "x",
        "entrypoint": "sdk-py",
    },
    {
        **USUAL,
        "type": "user",
        "message": {"role": "user", "content": [text("Look.")]},
        **ENDS,
        "toolUseResult": None,
        "todos": [],
        "permissionMode": "default",
    },
    # These have the usual names with other values, or another order.
    {**USUAL, "isSidechain": 0, "userType": None, "type": "user", "message": {}, **ENDS},
    {**USUAL, "type": "assistant", "message": {**ANSWER, "role": "user", "type": "x"}, **ENDS},
    {**ENDS, **USUAL, "type": "user", "message": {"content": "x", "role": "user"}},
    {**USUAL, "type": "user", "message": {"role": "user", "content": "x"}, **ENDS, "other": 1},
    {"type": "custom-title", "customTitle": "A", "message": [0, {}]},
    {**USUAL, "type": "custom-title", "customTitle": "A", "message": [0, {}], **ENDS},
    {**USUAL, "type": "user", "message": [0, {}], **ENDS},
]
for number, ordered in enumerate(ORDERED):
    if "uuid" in ordered:
        ordered["uuid"] = f"o{number}"
RECORDS += ORDERED


def same(record: Any) -> None:
    whole = json.dumps(record)
    entry = entry_of(record, "s", Turn(), ())
    assert json.dumps(record) == whole  # The caller's record does not change.
    back = json.loads(json.dumps({"id": "made", "timestamp": "made", **entry}))
    assert json.dumps(record_of(back, "s")) == whole


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_comes_back_equal_with_its_members_in_order(record: Any) -> None:
    same(record)


def test_a_line_is_not_longer_than_its_record() -> None:
    """A session once took 1.2 times the bytes of a transcript with the same records."""
    for record in ORDERED[:4]:
        long_text = "word " * 40
        message = {**record["message"], "content": [text(long_text)]}
        whole = {**record, "message": message, "parentUuid": "0" * 36, "uuid": "1" * 36}
        line = json.dumps(entry_of(whole, "s", Turn(), ()), separators=(",", ":"))
        assert len(line) <= len(json.dumps(whole, separators=(",", ":")))


KEYS: list[tuple[str, ...]] = [
    ("-home-ada-project", "0199a1f2-7c3e-4d10-9b55-5a0c1b7f2d31"),
    ("-home-ada-project", "0199a1f2-7c3e-4d10-9b55-5a0c1b7f2d31", "subagents/agent-7"),
    ('p \u00e9\x7f\n"\\/', "\u043a\u043b\u044e\u0447"),
    ("\ud800", "\U0001f600", "\udfff\u2028"),
]


def test_ids_and_entries_are_those_of_the_package_for_javascript() -> None:
    """The tests of `typescript` use the same file. `TREELINED_UPDATE=1` writes it."""
    made = {
        "keys": [{"key": list(key), "text": text_of(key), "id": session_of(key)} for key in KEYS],
        # JavaScript has no `0.0`.
        "records": [
            {"record": record, "entry": entry_of(record, "s", Turn(), ())}
            for record in RECORDS
            if not isinstance(record.get("uuid"), float)
        ],
    }
    if os.environ.get("TREELINED_UPDATE"):
        SHARED.parent.mkdir(exist_ok=True)
        SHARED.write_text(json.dumps(made, indent=1) + "\n")
    assert json.dumps(json.loads(SHARED.read_text())) == json.dumps(made)


def test_random_records_come_back_equal() -> None:
    """Put values in unusual places of records, also the placeholder `0`."""
    chance = random.Random(5)  # noqa: S311
    pool = [0, False, None, "", "a", "b", "root", 0.0, [], {}, "2026-03-01T09:30:00.000Z"]

    def change(value: Any) -> Any:
        if chance.random() < 0.08:
            return chance.choice(pool)
        if isinstance(value, dict):
            items = [(name, change(inner)) for name, inner in value.items()]
            if chance.random() < 0.1:
                chance.shuffle(items)
            if items and chance.random() < 0.1:
                items.pop()
            return dict(items)
        if isinstance(value, list):
            return [change(inner) for inner in value]
        return value

    for _ in range(4_000):
        record = change(chance.choice(RECORDS))
        if isinstance(record, dict):
            same(record)


def test_transcripts_of_claude_code_come_back_equal() -> None:
    seen = 0
    for path in sorted(FIXTURES.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            same(record)
            seen += 1
    assert seen > 20


async def test_what_the_daemon_stored_comes_back_equal(client: Client) -> None:
    store = TreelinedSessionStore(client)
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    odd = [*RECORDS, {"type": "x", "a": "\ud800 \udc00", "b": 2**70, "c": 1.0, "deep": deep}]
    await store.append(KEY, odd)
    assert json.dumps(await store.load(KEY)) == json.dumps(odd)


async def test_records_are_messages_that_clients_show(client: Client) -> None:
    store = TreelinedSessionStore(client)
    await store.append(KEY, [*RECORDS[:6], *RECORDS[8:14]])
    client.open_session(session_id=HERE)
    path = client.get_path(session_id=HERE)["entries"]
    shown = [(entry["type"], entry.get("message", {}).get("role")) for entry in path]
    assert shown == [
        ("custom", None),  # the key
        ("message", "user"),
        ("message", "assistant"),
        ("message", "toolResult"),
        ("message", "assistant"),
        ("message", "toolResult"),
        ("message", "user"),
        ("custom_message", None),
        ("custom_message", None),
        ("compaction", None),
        ("message", "assistant"),
        ("session_info", None),
    ]
    answer = path[2]["message"]
    assert [block["type"] for block in answer["content"]] == ["thinking", "text", "toolCall"]
    assert (answer["model"], answer["stopReason"]) == ("claude-sonnet-4-5", "stop")
    assert path[2]["id"] == "a1"
    assert path[3]["message"]["toolName"] == "Read"
    assert path[10]["message"]["stopReason"] == "error"
    (row,) = client.list_sessions()["sessions"]
    assert (row["name"], row["cwd"]) == ("A test", "/home/ada/project")
    assert row["firstMessage"] == "Fix the test."


async def test_a_text_is_stored_once(client: Client, tmp_path: Path) -> None:
    await TreelinedSessionStore(client).append(KEY, RECORDS)
    (file,) = (tmp_path / "sessions").rglob("*.jsonl")
    stored = file.read_text()
    for once in (
        "Fix the test.",
        "Read it first.",
        "fn main",
        "42 lines",
        "What was done.",
        "docs",
        "2.000Z",
    ):
        assert stored.count(once) <= 1, once
    assert stored.count('"u1"') == 2  # its id, and the parent of the next
