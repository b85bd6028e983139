"""Tests of the extensions with the real daemon, which starts them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from treelined import Client, TreelinedError, types

from test_examples import DAEMON, env, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["env"]

EXTENSIONS = Path(__file__).parent / "extensions"
SETTINGS = {
    "guard": 'may = "read"\nanswers = ["session_before_tree"]',
    "labeller": "",
    "todo": "",
}

Started = tuple[Client, list[types.UserAsked]]


@pytest.fixture
def started(env: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str], Started]]:
    """Start a client whose daemon has this extension. Also return its questions to the person."""
    clients: list[Client] = []

    def start(name: str) -> Started:
        config = tmp_path / "config.toml"
        program = EXTENSIONS / f"{name}.py"
        config.write_text(
            f'[[extensions]]\nname = "{name}"\nargv = ["{sys.executable}", "{program}"]\n'
            f'sessions = "all"\n{SETTINGS[name]}\n'
        )
        asked: list[types.UserAsked] = []

        def person(event: types.UserAsked, _over: object) -> types.EventAnswer:
            asked.append(event)
            return {"value": len(asked) > 1}

        client = Client(
            str(DAEMON), args=["--config", str(config)], env=env, answers={"user_asked": person}
        )
        clients.append(client)
        client.start()
        return client, asked

    yield start
    for client in clients:
        client.close()


def shell(command: str, code: int) -> types.Message:
    return {"role": "bashExecution", "command": command, "output": "", "exitCode": code}


def eventually(holds: Callable[[], Any]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_todo_list_belongs_to_its_branch(started: Callable[[str], Started]) -> None:
    client, _ = started("todo")
    eventually(lambda: client.list_commands()["commands"])
    (command,) = client.list_commands()["commands"]
    assert (command["name"], command["by"]) == ("todo", "todo")
    session = client.create_session()["session"]["sessionId"]
    client.append_message(entry_id="u1", message=text("user", "what is to do?"))

    def todo(args: str = "") -> str:
        return client.run_command(name="todo", args=args, session_id=session)["output"]

    assert todo() == "nothing to do"
    assert todo("write it") == "1. [ ] write it"
    assert todo("test it") == "1. [ ] write it\n2. [ ] test it"
    assert todo("done 1") == "1. [x] write it\n2. [ ] test it"
    row = client.get_tree()["nodes"][-1]
    assert (row["preview"], row["icon"]) == ("1/2 done", "☑")
    client.set_leaf(leaf_id="u1")
    assert todo() == "nothing to do"
    with pytest.raises(TreelinedError) as raised:
        client.run_command(name="todo", args="done 7", session_id=session)
    assert raised.value.kind == "commandFailed"


def test_a_person_is_asked_before_failing_tests_are_left(
    started: Callable[[str], Started],
) -> None:
    client, asked = started("guard")
    client.create_session()
    client.append_message(entry_id="u1", message=text("user", "make it green"))
    client.append_message(entry_id="a1", message=text("assistant", "what now?"))
    client.append_message(entry_id="t1", message=shell("make test", 0))

    # Until the guard is ready no branch can be left: a missing guard does not consent.
    def passes() -> bool:
        return not client.navigate_tree(target_id="u1")["cancelled"]

    eventually(passes)
    client.set_leaf(leaf_id="t1")
    client.append_message(entry_id="t2", message=shell("make test", 1))
    assert asked == []
    refused = client.navigate_tree(target_id="a1")
    assert (refused["cancelled"], refused["reason"]) == (True, "cancelledByClient")
    why = "`make test` failed, and nothing was run since."
    assert (refused["by"], refused["message"]) == ("guard", why)
    (question,) = asked
    assert (question["by"], question["kind"]) == ("guard", "confirm")
    assert "`make test` failed" in question["message"]
    assert client.navigate_tree(target_id="a1")["cancelled"] is False
    assert len(asked) == 2


def test_test_runs_and_commits_are_labelled(started: Callable[[str], Started]) -> None:
    client, _ = started("labeller")
    client.create_session()
    numbers = iter(range(1000))

    # The extension gets no events before it is ready.
    def labelled() -> bool:
        entry_id = f"t{next(numbers)}"
        client.append_message(entry_id=entry_id, message=shell("npm test", 1))
        time.sleep(0.1)
        return client.get_label(entry_id=entry_id).get("label") == "test failed"

    eventually(labelled)
    client.append_message(entry_id="ls", message=shell("ls", 0))
    client.append_message(entry_id="c", message=shell("git commit -m x", 0))
    eventually(lambda: client.get_label(entry_id="c").get("label") == "git commit done")
    assert client.get_label(entry_id="ls").get("label") is None
