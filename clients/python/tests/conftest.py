"""Fixtures of the tests: the daemon, clients, and a conversation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from treelined import AsyncClient, Client, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = os.environ.get("TREELINED_BIN", "treelined")
REPOSITORY = Path(__file__).parents[3]


def message(entry_id: str) -> types.Message:
    content: list[types.ContentBlock] = [{"type": "text", "text": f"says {entry_id}"}]
    if entry_id.startswith("u"):
        return {"role": "user", "content": content}
    return {"role": "assistant", "content": content}


def converse(client: Client) -> str:
    """Create a session with the messages u1 → a1 → u2 → a2. The leaf is a2."""
    session_id = client.create_session()["session"]["sessionId"]
    for entry_id in ("u1", "a1", "u2", "a2"):
        client.append_message(session_id=session_id, entry_id=entry_id, message=message(entry_id))
    return session_id


async def converse_async(client: AsyncClient) -> str:
    """Create the same session with asyncio."""
    session_id = (await client.create_session())["session"]["sessionId"]
    for entry_id in ("u1", "a1", "u2", "a2"):
        said = message(entry_id)
        await client.append_message(session_id=session_id, entry_id=entry_id, message=said)
    return session_id


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Return a client with its own session directory."""
    with Client(COMMAND, session_dir=tmp_path / "sessions") as client:
        yield client


@pytest.fixture
def impostor(tmp_path: Path) -> Callable[[str], list[str]]:
    """Make a fake daemon, which speaks another version or never responds."""

    def make(answer: str) -> list[str]:
        script = tmp_path / "daemon.py"
        script.write_text(
            "import json, sys, time\n"
            "def say(**members): print(json.dumps({'jsonrpc': '2.0', **members}), flush=True)\n"
            "for line in sys.stdin:\n"
            "    message = json.loads(line)\n"
            f"    {answer}\n"
        )
        return [str(script)]

    return make
