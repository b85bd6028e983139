"""Tests the session with the daemon `TREELINED_BIN`, and with the SDK's runner and a stub model."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from treelined import Client

from treelined_openai_agents import KeyTaken, TreelinedSession
from treelined_openai_agents._entries import entry_of, item_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HERE = Path(__file__).parent.parent


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(session_dir=str(tmp_path / "sessions")) as client:
        yield client


def user(text: str) -> Any:
    return {"role": "user", "content": text}


ITEMS: list[Any] = [
    user("Fix the test."),
    {"role": "user", "content": [{"type": "input_text", "text": "And"}, {"type": "input_image"}]},
    {
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Think."}],
        "type": "reasoning",
        "encrypted_content": "abc",
    },
    {"arguments": '{"path":"ä.rs"}', "call_id": "c1", "name": "read", "type": "function_call"},
    {"arguments": '{"b": 1,  "a": 2}', "call_id": "c2", "name": "x", "type": "function_call"},
    {"arguments": "not JSON", "call_id": "c3", "name": "x", "type": "function_call", "id": "f"},
    {"call_id": "c1", "output": "fn main() {}", "type": "function_call_output"},
    {"type": "function_call_output", "output": [{"type": "input_image"}], "call_id": "c2"},
    {
        "id": "m1",
        "content": [{"annotations": [], "text": "Done.", "type": "output_text", "logprobs": []}],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    },
    {"type": "compaction", "encrypted_content": "x"},
    {"role": "user", "content": {"$": 0}},
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": {"$": 0}}]},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": {"$": 0}}],
    },
    {"role": "user", "content": ""},
]


def test_items_come_back_equal_with_their_members_in_order() -> None:
    calls = {"c1": "read"}
    for item in ITEMS:
        entry = json.loads(json.dumps(entry_of(item, calls)))
        assert json.dumps(item_of(entry)) == json.dumps(item)


async def test_a_text_is_stored_once_and_shown_as_a_message(client: Client) -> None:
    session = TreelinedSession("talk", client=client)
    await session.add_items(ITEMS)
    rows = client.get_tree(session_id="talk", filter="all")["nodes"]
    assert [row["preview"] for row in rows][1] == "Fix the test."
    entries = json.dumps(client.get_entries(session_id="talk")["entries"])
    assert entries.count("fn main() {}") == 1
    assert entries.count("Fix the test.") == 1
    results = [it for it in client.get_entries(session_id="talk")["entries"] if "message" in it]
    named = [it["message"]["toolName"] for it in results if it["message"]["role"] == "toolResult"]
    assert named == ["read"]


async def test_the_session_does_as_the_sessions_of_the_sdk_do(client: Client) -> None:
    """Random calls to the SDK's own session and to this one have equal results."""
    chance = random.Random(7)  # noqa: S311
    ours, theirs = TreelinedSession("random", client=client), SQLiteSession("random")
    for _ in range(150):
        act = chance.choice(["add", "add", "pop", "limit", "clear"])
        if act == "add":
            items = [chance.choice(ITEMS) for _ in range(chance.randint(0, 3))]
            await ours.add_items(items)
            await theirs.add_items(items)
        elif act == "pop":
            assert await ours.pop_item() == await theirs.pop_item()
        elif act == "limit":
            limit = chance.randint(0, 5)
            assert await ours.get_items(limit) == await theirs.get_items(limit)
        elif chance.random() < 0.2:
            await ours.clear_session()
            await theirs.clear_session()
        assert await ours.get_items() == await theirs.get_items()


async def test_another_process_finds_the_items_and_the_leaf(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with Client(session_dir=folder) as first:
        session = TreelinedSession("one two/three", client=first)
        await session.add_items([user("a"), user("b"), user("c")])
        assert await session.pop_item() == user("c")
    with Client(session_dir=folder) as second:
        session = TreelinedSession("one two/three", client=second)
        assert await session.get_items() == [user("a"), user("b")]
        await session.add_items([user("d")])
        assert await session.get_items() == [user("a"), user("b"), user("d")]
        assert len(await session.list_branches()) == 2


async def test_keys_are_isolated_and_a_session_of_another_key_is_refused(client: Client) -> None:
    for key in ["a", "A b", "k-1", "ключ", "x" * 300]:
        session = TreelinedSession(key, client=client)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.clear_session()
        await session.add_items([user(f"in {len(key)}")])
        assert await session.get_items() == [user(f"in {len(key)}")]
    client.create_session(session_id="taken", write="now")
    client.append_message(message={"role": "user", "content": "x"}, session_id="taken")
    with pytest.raises(KeyTaken, match="taken"):
        await TreelinedSession("taken", client=client).add_items([user("y")])


async def test_branches_begin_at_turns_and_the_left_one_stays(client: Client) -> None:
    session = TreelinedSession("tree", client=client)
    await session.add_items([user("one"), {"role": "assistant", "content": "1"}, user("two")])
    assert [turn.content for turn in await session.get_turns()] == ["one", "two"]
    assert await session.create_branch_from_turn(2, "first try")
    assert await session.get_items() == [user("one"), {"role": "assistant", "content": "1"}]
    await session.add_items([user("three")])
    assert "first try" in [row["name"] for row in await session.list_branches()]
    await session.switch_to_branch("first try")
    assert (await session.get_items())[-1] == user("two")
    with pytest.raises(ValueError, match="numbered from 1"):
        await session.create_branch_from_turn(9)


async def test_messages_of_other_clients_are_items(client: Client) -> None:
    session = TreelinedSession("shared", client=client)
    await session.add_items([user("one")])
    client.append_message(message={"role": "user", "content": "by hand"}, session_id="shared")
    assert await session.get_items() == [user("one"), user("by hand")]


async def test_calls_at_once_and_cancelled_ones_leave_whole_items(client: Client) -> None:
    session = TreelinedSession("busy", client=client)
    await asyncio.gather(*(session.add_items([user(f"{n}"), user(f"{n}!")]) for n in range(20)))
    adding = asyncio.ensure_future(session.add_items([user("x"), user("x!")]))
    await asyncio.sleep(0)
    adding.cancel()
    texts: list[Any] = [dict(item)["content"] for item in await session.get_items()]
    assert all(after == f"{before}!" for before, after in zip(texts[::2], texts[1::2], strict=True))
    assert len(texts) in (40, 42)


class Scripted(Model):
    """A model that calls the tool once, then answers."""

    given: Any = None

    async def get_response(self, *_: Any, **asked: Any) -> ModelResponse:
        given = asked["input"]
        self.given = given
        if given[-1].get("type") == "function_call_output":
            text = ResponseOutputText(text="It is 7.", type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)
        call = ResponseFunctionToolCall(
            arguments='{"a":3,"b":4}', call_id=f"c{len(given)}", name="add", type="function_call"
        )
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_the_runner_of_the_sdk_goes_on_in_the_session(client: Client) -> None:
    model = Scripted()
    agent = Agent(name="adder", model=model, tools=[add])
    config = RunConfig(tracing_disabled=True)
    session = TreelinedSession("run", client=client)

    async def ask(session: Any, text: str) -> None:
        result = await Runner.run(agent, text, session=session, run_config=config)
        assert result.final_output == "It is 7."

    await ask(session, "What is 3 + 4?")
    plain = SQLiteSession("run")
    await ask(plain, "What is 3 + 4?")
    assert await session.get_items() == await plain.get_items()
    await ask(session, "Again?")
    assert dict(model.given[0]) == user("What is 3 + 4?")
    assert len(await session.get_items()) == 8


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
