"""Clients on one shared daemon: answers, commands, questions, renderers, watched sessions."""

from __future__ import annotations

import asyncio
import queue
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import COMMAND, converse, converse_async

from treelined import AsyncClient, Client, TreelinedError, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_WAIT = 30.0


@pytest.fixture
def shared() -> Iterator[dict[str, Any]]:
    """Return the options for clients of one daemon. The daemon ends after the test."""
    # `tmp_path` is too long for the path of a socket.
    folder = tempfile.mkdtemp(prefix="treelined-")
    socket = Path(folder, "daemon.sock")
    yield {"session_dir": Path(folder, "sessions"), "socket": socket}
    subprocess.run([COMMAND, "stop", "--socket", socket], capture_output=True, check=False)
    shutil.rmtree(folder)


@pytest.fixture
def join(shared: dict[str, Any]) -> Iterator[Callable[..., Client]]:
    """Start clients of that daemon."""
    clients: list[Client] = []

    def start(name: str, **options: Any) -> Client:
        client = Client(COMMAND, client_info={"name": name}, **shared, **options)
        clients.append(client)
        client.start()
        return client

    yield start
    for client in clients:
        client.close()


def test_the_shared_daemon_of_a_session_directory_is_started_once(
    tmp_path: Path, shared: dict[str, Any]
) -> None:
    folder = shared["socket"].parent
    env = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder), "HOME": str(tmp_path)}
    options: dict[str, Any] = {"session_dir": shared["session_dir"], "env": env, "shared": True}
    with Client(COMMAND, **options) as first, Client(COMMAND, **options) as second:
        session = converse(first)
        (row,) = second.list_sessions()["sessions"]
        # The daemon may have been started in another directory.
        assert (row["sessionId"], row["cwd"]) == (session, str(Path.cwd().resolve()))
        (socket,) = (folder / "treelined").glob("*.sock")
    subprocess.run([COMMAND, "stop", "--socket", socket], env=env, check=True)


def test_a_veto_of_one_client_holds_the_navigation_of_another(join: Callable[..., Client]) -> None:
    def veto(event: types.SessionBeforeTree, _: threading.Event) -> types.EventAnswer:
        return {"cancel": event["preparation"]["targetId"] == "a1"}

    editor = join("editor")
    guard = join("guard", answers={"session_before_tree": veto})
    session = converse(editor)
    moves: queue.Queue[types.SessionTree] = queue.Queue()
    guard.open_session(session_id=session)
    guard.on("session_tree", moves.put)
    refused = editor.navigate_tree(target_id="a1")
    assert (refused["cancelled"], refused["reason"]) == (True, "cancelledByClient")
    assert editor.navigate_tree(target_id="u1")["cancelled"] is False
    assert moves.get(timeout=MAX_WAIT)["oldLeafId"] == "a2"


def test_a_command_of_one_client_is_run_by_another(join: Callable[..., Client]) -> None:
    owner, editor = join("owner"), join("editor")
    session = converse(editor)
    owner.open_session(session_id=session)

    def last(event: types.CommandInvoked, _: threading.Event) -> types.RunCommandResult:
        assert event["by"] == "editor"
        more = owner.answer_event(event_id=event["eventId"], extend_ms=60_000)
        assert more["timeoutMs"] > 50_000
        leaf = owner.get_leaf(session_id=event["sessionId"])["leafId"]
        return {"output": f"{event['args']}: {leaf}", "prompt": "go on"}

    owner.offer_command("last", last, description="Names the leaf", argument_hint="TEXT")
    owner.offer_command("echo", lambda event, _: event["args"])
    listed = editor.list_commands()["commands"]
    assert [(one["name"], one["by"]) for one in listed] == [("echo", "owner"), ("last", "owner")]
    ran = editor.run_command(name="last", args="the leaf", session_id=session, timeout_ms=1000)
    assert ran == {"output": "the leaf: a2", "prompt": "go on"}
    assert editor.run_command(name="echo", args="é\n") == {"output": "é\n"}
    owner.unregister_command(name="echo")
    with pytest.raises(TreelinedError) as raised:
        editor.run_command(name="echo")
    assert raised.value.kind == "commandNotFound"


def test_an_exception_is_the_failure_of_a_command(join: Callable[..., Client]) -> None:
    owner, editor = join("owner"), join("editor")

    def fail(_: types.CommandInvoked, __: threading.Event) -> None:
        raise ValueError("no such item")

    owner.offer_command("fail", fail)
    wrong: Any = {"outptu": "misspelt"}
    owner.offer_command("wrong", lambda _, __: wrong)
    for name, message in (("fail", "no such item"), ("wrong", "outptu")):
        with pytest.raises(TreelinedError) as raised:
            editor.run_command(name=name)
        assert (raised.value.kind, raised.value.details["reason"]) == ("commandFailed", "error")
        assert message in raised.value.details["message"]
    with pytest.raises(TreelinedError) as raised:
        editor.offer_command("fail", fail)
    assert raised.value.kind == "commandExists"


def test_a_question_of_one_client_is_answered_by_a_person_at_another(
    join: Callable[..., Client],
) -> None:
    asked: list[types.UserAsked] = []

    def person(event: types.UserAsked, _: threading.Event) -> types.EventAnswer | None:
        asked.append(event)
        return {"value": "red"} if event["kind"] == "select" else None

    agent = join("agent")
    with pytest.raises(TreelinedError) as raised:
        agent.ask_user(kind="confirm", title="Is anyone there?")
    assert raised.value.kind == "noUser"
    join("editor", answers={"user_asked": person})
    chosen = agent.ask_user(kind="select", title="Which one?", options=["red", "blue"])
    assert chosen == {"value": "red"}
    refused = agent.ask_user(kind="confirm", title="Leave?")
    assert refused == {"dismissed": True, "reason": "dismissed"}
    assert [(event["title"], event["by"]) for event in asked] == [
        ("Which one?", "agent"),
        ("Leave?", "agent"),
    ]


def test_the_first_answer_takes_the_question_back_from_the_others(
    join: Callable[..., Client],
) -> None:
    # An answerer does not run if its question is over before: `quick` waits until `slow` runs.
    is_over: list[bool] = []

    def slow(_: types.UserAsked, over: threading.Event) -> None:
        asked.set()
        is_over.append(over.wait(MAX_WAIT))
        done.set()

    def quick(_: types.UserAsked, __: threading.Event) -> types.EventAnswer:
        assert asked.wait(MAX_WAIT)
        return {"value": True}

    asked, done = threading.Event(), threading.Event()
    agent = join("agent")
    waiting = join("waiting", answers={"user_asked": slow})
    outcomes: queue.Queue[types.EventResolved] = queue.Queue()
    waiting.on("event_resolved", outcomes.put)
    join("quick", ui=["confirm"]).answer("user_asked", quick)
    assert agent.ask_user(kind="confirm", title="Go?") == {"value": True}
    resolved = outcomes.get(timeout=MAX_WAIT)
    assert (resolved["outcome"], resolved.get("by")) == ("answered", "quick")
    assert done.wait(MAX_WAIT)
    assert is_over == [True]


def test_messages_reach_clients_with_a_person(join: Callable[..., Client]) -> None:
    agent, screen = join("agent"), join("screen", ui=[])
    shown: queue.Queue[types.UserNotified] = queue.Queue()
    screen.on("user_notified", shown.put)
    assert agent.notify_user(message="The build is green.", level="info") == {"delivered": 1}
    assert shown.get(timeout=MAX_WAIT)["message"] == "The build is green."
    with pytest.raises(TreelinedError) as raised:
        agent.ask_user(kind="confirm", title="A screen without keys?")
    assert raised.value.kind == "noUser"


def test_the_renderer_of_one_client_draws_the_rows_of_another(join: Callable[..., Client]) -> None:
    extension, editor = join("extension"), join("editor")
    extension.register_renderer(
        custom_type="todo", preview="{details.done} of 2", icon="☑", style="success"
    )
    converse(editor)
    details = {"done": 1}
    entry = {"type": "custom_message", "customType": "todo", "content": "", "display": True}
    editor.append_entries(entries=[{**entry, "details": details}])
    row = editor.get_tree()["nodes"][-1]
    assert (row["preview"], row["icon"], row["style"]) == ("1 of 2", "☑", "success")


def test_a_watching_client_hears_of_the_sessions_of_another(join: Callable[..., Client]) -> None:
    watcher, editor = join("watcher"), join("editor")
    heard: queue.Queue[types.SessionsChanged] = queue.Queue()
    watcher.on("sessions_changed", heard.put)
    watcher.watch_sessions()
    session = converse(editor)
    while not any(
        row["sessionId"] == session and row["messageCount"] == 4
        for row in heard.get(timeout=MAX_WAIT)["changed"]
    ):
        pass
    editor.delete_session(session_id=session)
    while session not in heard.get(timeout=MAX_WAIT)["removed"]:
        pass
    watcher.unwatch_sessions()


def test_asyncio_clients_do_the_same(shared: dict[str, Any]) -> None:
    async def test() -> None:
        async def person(event: types.UserAsked) -> types.EventAnswer:
            return {"value": event["title"].upper()}

        async def shout(event: types.CommandInvoked) -> str:
            asked = await owner.ask_user(kind="input", title=event["args"])
            return f"{asked['value']}!"

        async def wait(_: types.CommandInvoked) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                over.set()

        over = asyncio.Event()
        async with (
            AsyncClient(COMMAND, **shared) as owner,
            AsyncClient(COMMAND, **shared, answers={"user_asked": person}) as editor,
        ):
            await converse_async(editor)
            await owner.offer_command("shout", shout)
            await owner.offer_command("wait", wait)
            ran = await editor.run_command(name="shout", args="hello")
            assert ran.get("output") == "HELLO!"
            with pytest.raises(TreelinedError) as raised:
                await editor.run_command(name="wait", timeout_ms=100)
            assert raised.value.details["reason"] == "timeout"

    asyncio.run(asyncio.wait_for(test(), MAX_WAIT))
