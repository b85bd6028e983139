"""The session objects of a client, and the program that a client starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import COMMAND, converse, converse_async

from treelined import AsyncClient, Client, DisconnectedError

if TYPE_CHECKING:
    from treelined import types


def test_the_calls_of_a_session_are_about_it(client: Client) -> None:
    """There was once no session object: if two sessions were open, each call had to name one."""
    first, second = converse(client), converse(client)
    client.set_leaf(session_id=second, leaf_id="a1")
    handles = client.session(first), client.session(second)
    assert [handle.get_leaf()["leafId"] for handle in handles] == ["a2", "a1"]
    assert handles[0].get_leaf(session_id=second)["leafId"] == "a1"
    assert len(handles[0].list_sessions()["sessions"]) == len(handles)
    heard: list[types.SessionTree] = []
    is_told = threading.Event()

    def hear(event: types.SessionTree) -> None:
        heard.append(event)
        is_told.set()

    handles[0].on("session_tree", hear)
    for handle in reversed(handles):
        handle.set_leaf(leaf_id="u1")
    # A thread of the client runs the handler, perhaps after the response.
    assert is_told.wait(10)
    assert [event["sessionId"] for event in heard] == [first]


def test_the_calls_of_an_asynchronous_session_are_about_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncClient(COMMAND, session_dir=tmp_path) as client:
            first, second = await converse_async(client), await converse_async(client)
            await client.session(second).set_leaf(leaf_id="a1")
            assert (await client.session(first).get_leaf())["leafId"] == "a2"

    asyncio.run(run())


def test_the_program_is_that_of_the_variable_before_the_path(tmp_path: Path) -> None:
    program = str(Path(COMMAND).resolve()) if os.sep in COMMAND else COMMAND
    env = {**os.environ, "TREELINED_BIN": program, "PATH": "/no/bin"}
    with Client(session_dir=tmp_path, env=env) as client:
        assert client.list_sessions()["sessions"] == []
    with pytest.raises(DisconnectedError, match=r"tried: /no/treelined \(TREELINED_BIN\)"):
        Client(env={**env, "TREELINED_BIN": "/no/treelined"}).start()
    tried = (
        r"tried: TREELINED_BIN \(not set\), .*bin/treelined \(of this package\), .*PATH \(/no/bin"
    )
    with pytest.raises(DisconnectedError, match=tried):
        Client(env={"PATH": "/no/bin"}).start()


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)"])
def test_a_program_ends_although_its_client_is_open(tmp_path: Path, end: str) -> None:
    script = (
        "from treelined import Client\n"
        f"client = Client({COMMAND!r}, session_dir={str(tmp_path)!r})\n"
        "client.start()\n"
        "client.create_session()\n"
        f"{end}\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
