"""The blocking client: calls, errors, large messages, handlers, answerers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import COMMAND, REPOSITORY, converse

from treelined import (
    PROTOCOL_VERSION,
    SCHEMA_HASH,
    Client,
    DeadlineError,
    DisconnectedError,
    TreelinedError,
    VersionMismatchError,
    types,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from treelined import NotificationName


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_initialize_returns_the_name_of_the_daemon(tmp_path: Path) -> None:
    with Client(COMMAND, session_dir=tmp_path, summarizer="outline") as client:
        assert client.server["protocolVersion"] == PROTOCOL_VERSION
        assert client.server["serverInfo"]["name"] == "treelined"
        assert client.server["capabilities"]["summarizer"] == "outline"


def test_the_daemon_and_the_types_come_from_the_same_schema(client: Client) -> None:
    assert client.server["schemaHash"] == SCHEMA_HASH
    document = json.loads((REPOSITORY / "schema" / "openrpc.json").read_text())
    assert client.discover() == document


def test_a_conversation_can_be_written_read_and_navigated(client: Client) -> None:
    converse(client)
    rows = client.get_tree(render="unicode")["nodes"]
    assert [row["preview"] for row in rows] == ["says u1", "says a1", "says u2", "says a2"]
    nested = client.get_tree(format="nested")["nodes"]
    assert nested[0]["entry"]["id"] == "u1"

    moved = client.navigate_tree(target_id="u2")
    assert moved["editorText"] == "says u2"
    assert moved["newLeafId"] == "a1"
    assert client.undo_navigation()["newLeafId"] == "a2"
    preparation = client.navigate_tree(target_id="a1", dry_run=True)["preparation"]
    assert [entry["id"] for entry in preparation["entriesToSummarize"]] == ["u2", "a2"]
    (row,) = client.list_sessions()["sessions"]
    assert row["messageCount"] == 4


def test_none_is_sent_where_null_is_a_position(client: Client) -> None:
    converse(client)
    assert client.set_leaf(leaf_id=None)["newLeafId"] is None
    root = client.append_message(
        parent_id=None, expected_leaf_id=None, message={"role": "user", "content": "a root"}
    )
    roots = client.get_children(entry_id=None)["entries"]
    assert [entry["id"] for entry in roots] == ["u1", root["entryId"]]


def test_errors_have_a_kind_details_and_retryable(client: Client, tmp_path: Path) -> None:
    def failure(call: Callable[[], object]) -> TreelinedError:
        with pytest.raises(TreelinedError) as caught:
            call()
        return caught.value

    none = failure(lambda: client.get_tree(session_id="nowhere"))
    assert (none.kind, none.code) == ("sessionNotFound", 1100)
    converse(client)
    missing = failure(lambda: client.get_entry(entry_id="nothing"))
    assert (missing.kind, missing.details["entryId"]) == ("entryNotFound", "nothing")
    assert str(missing).startswith("get_entry: ")
    moved = failure(lambda: client.set_leaf(leaf_id="u1", expected_leaf_id="a1"))
    assert (moved.kind, moved.details["leafId"]) == ("leafMoved", "a2")
    wrong = failure(lambda: client.call("get_entry", {"entry": "a1"}))
    assert (wrong.kind, wrong.retryable) == ("invalidParams", False)
    assert "field" in wrong.details
    assert failure(lambda: client.call("get_rich", {})).kind == "methodNotFound"

    args = ["--max-frame-bytes", "70000", "--summarizer", "none"]
    with Client(COMMAND, session_dir=tmp_path / "other", args=args) as small:
        text = "x" * 80_000
        large = failure(lambda: small.append_message(message={"role": "user", "content": text}))
        assert large.kind == "requestTooLarge"
        assert small.list_sessions()["sessions"] == [], "the connection goes on"
        converse(small)
        summary = failure(lambda: small.navigate_tree(target_id="a1", summarize=True))
        assert summary.kind == "summarizerUnavailable"


def test_a_message_of_20_mb_is_written_and_read(client: Client) -> None:
    client.create_session()
    text = "päckchen\n" * 2_000_000
    entry_id = client.append_message(message={"role": "user", "content": text})["entryId"]
    entry = client.get_entry(entry_id=entry_id)["entry"]
    assert entry["type"] == "message"
    assert entry["message"]["content"] == text  # type: ignore[typeddict-item]


def test_other_line_separators_stay_inside_messages(client: Client) -> None:
    path = client.create_session()["session"]["path"]
    text = "a\u2028b\u2029c\u0085d\re\r\nf\vg\fh\ni\x1e\x1c\ufeff😀"
    entry_id = client.append_message(message={"role": "user", "content": text})["entryId"]
    entry: Any = client.get_entry(entry_id=entry_id)["entry"]
    assert entry["message"]["content"] == text
    assert Path(path).read_bytes().count(b"\n") == 2, "the header and one entry"
    assert text.splitlines()[-1] in Path(path).read_text(), "stored as it is, not escaped"


def test_an_unpaired_surrogate_is_kept(client: Client) -> None:
    client.create_session()
    entry_id = client.append_message(message={"role": "user", "content": "ä\ud83d"})["entryId"]
    entry: Any = client.get_entry(entry_id=entry_id)["entry"]
    assert entry["message"]["content"] == "ä\ud83d"


def test_a_response_that_python_cannot_parse_fails_only_its_call(client: Client) -> None:
    converse(client)
    said: types.Message = {"role": "user", "content": "deeper"}
    entries: Any = [{"type": "message", "message": said}] * 2000
    client.append_entries(entries=entries)
    with pytest.raises(TreelinedError, match=r"^get_tree: Python cannot decode") as caught:
        client.get_tree(format="nested", max_depth=10_000)
    assert caught.value.kind == "unreadable"
    assert client.get_tree()["total"] == 2004


def test_threads_can_share_a_client(client: Client) -> None:
    client.create_session()

    def append(entry_id: str) -> str:
        said: types.Message = {"role": "user", "content": entry_id}
        return client.append_message(entry_id=entry_id, message=said)["entryId"]

    ids = [f"m{number}" for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(append, ids)) == ids
    entries = client.get_entries()["entries"]
    assert {entry["id"] for entry in entries} == set(ids)


def test_handlers_get_notifications_and_can_call_the_client(client: Client) -> None:
    converse(client)
    moves: list[tuple[types.SessionTree, str | None]] = []
    heard = threading.Event()

    def handle(move: types.SessionTree) -> None:
        moves.append((move, client.get_leaf()["leafId"]))
        heard.set()

    end = client.on("session_tree", handle)
    client.set_leaf(leaf_id="a1")
    assert heard.wait(10)
    ((move, leaf),) = moves
    assert (move["oldLeafId"], move["newLeafId"], move["cause"]) == ("a2", "a1", "set_leaf")
    assert leaf == "a1"
    end()
    client.set_leaf(leaf_id="a2")
    client.get_leaf()
    assert len(moves) == 1, "nobody listens any more"


def test_handlers_can_be_set_before_the_start_as_with_asyncio(tmp_path: Path) -> None:
    """`on` once raised an exception before the start, so the first notifications were lost."""
    client = Client(COMMAND, session_dir=tmp_path)
    heard = threading.Event()
    client.on("session_opened", lambda _: heard.set())
    with client:
        client.create_session()
        assert heard.wait(10)


def test_a_client_that_is_not_started_says_so(tmp_path: Path) -> None:
    client = Client(COMMAND, session_dir=tmp_path)
    for call in (client.get_leaf, client.closed, lambda: client.pid, lambda: client.server):
        with pytest.raises(RuntimeError, match="is not started"):
            call()
    with client, pytest.raises(RuntimeError, match="is already started"):
        client.start()


def test_an_answerer_can_cancel_or_summarize(tmp_path: Path) -> None:
    with Client(COMMAND, session_dir=tmp_path, answers=["session_before_tree"]) as client:
        converse(client)

        def answer(
            event: types.SessionBeforeTree, over: threading.Event
        ) -> types.EventAnswer | None:
            assert not over.is_set()
            preparation = event["preparation"]
            if not preparation["userWantsSummary"]:
                return {"cancel": preparation["targetId"] == "u1"}
            left = [entry["id"] for entry in preparation["entriesToSummarize"]]
            leaf = client.get_leaf()["leafId"]
            return {"summary": {"summary": f"left {left} from {leaf}"}}

        client.answer("session_before_tree", answer)
        vetoed = client.navigate_tree(target_id="u1")
        assert (vetoed["cancelled"], vetoed["reason"]) == (True, "cancelledByClient")
        moved = client.navigate_tree(target_id="a1", summarize=True, label="left")
        summary = moved["summaryEntry"]
        assert summary["type"] == "branch_summary"
        assert summary["summary"] == "left ['u2', 'a2'] from a2"
        assert client.get_label(entry_id=summary["id"])["label"] == "left"


def test_answers_make_the_daemon_wait(tmp_path: Path) -> None:
    """Once, the event had to be named twice: for the daemon, and for the answerer."""

    def veto(event: types.SessionBeforeTree, _: threading.Event) -> types.EventAnswer | None:
        return {"cancel": event["preparation"]["targetId"] == "a1"}

    early = Client(COMMAND, session_dir=tmp_path)
    early.answer("session_before_tree", veto)
    for client in (
        early,
        Client(COMMAND, session_dir=tmp_path, answers={"session_before_tree": veto}),
    ):
        with client:
            converse(client)
            assert client.navigate_tree(target_id="a1")["reason"] == "cancelledByClient"
            client.answer("session_before_tree", lambda *_: None)
            assert client.navigate_tree(target_id="a1")["cancelled"] is False
            with pytest.raises(ValueError, match="does not wait"):
                client.answer("session_before_fork", lambda *_: None)


def test_the_error_for_a_missing_program_names_the_path(tmp_path: Path) -> None:
    """The error was once only an errno, the same as for a missing folder."""
    looked = (
        r"tried: no-such-treelined on the PATH \(/no/bin\)\. "
        r"Install it with `cargo install --path \.`.*Client\("
    )
    with pytest.raises(DisconnectedError, match=looked):
        Client("no-such-treelined", env={"PATH": "/no/bin"}).start()
    with pytest.raises(DisconnectedError, match=r"no folder .*gone to start it in"):
        Client(COMMAND, cwd=tmp_path / "gone").start()


def test_a_waiting_navigation_is_aborted_from_another_thread(tmp_path: Path) -> None:
    with Client(COMMAND, session_dir=tmp_path, answers=["session_before_tree"]) as client:
        converse(client)
        dismissed = threading.Event()

        def answer(event: types.SessionBeforeTree, over: threading.Event) -> None:
            client.abort_navigation(navigation_id=event["navigationId"])
            if over.wait(60):
                dismissed.set()

        client.answer("session_before_tree", answer)
        assert client.navigate_tree(target_id="a1")["reason"] == "aborted"
        assert dismissed.wait(10)
        assert client.get_leaf()["leafId"] == "a2"


def test_questions_are_answered_concurrently(tmp_path: Path) -> None:
    count = 40
    with Client(COMMAND, session_dir=tmp_path, answers=["session_before_tree"]) as client:
        sessions = [converse(client) for _ in range(count)]
        all_asked = threading.Barrier(count)

        def answer(_: types.SessionBeforeTree, __: threading.Event) -> types.EventAnswer:
            all_asked.wait(20)
            return {"cancel": True}

        def go(session_id: str) -> types.Navigation:
            return client.navigate_tree(session_id=session_id, target_id="a1")

        client.answer("session_before_tree", answer)
        with ThreadPoolExecutor(count) as threads:
            moved = list(threads.map(go, sessions))
        assert {moved["reason"] for moved in moved} == {"cancelledByClient"}


# A guard that raised an exception once counted as having no opinion, so the move happened.
@pytest.mark.parametrize("on_failure", ["cancel", "proceed"])
@pytest.mark.parametrize(
    "error", [SystemExit(1), StopIteration(), asyncio.CancelledError(), ValueError("no\nmore")]
)
def test_an_answerer_that_raises_cancels_unless_failures_proceed(
    tmp_path: Path, error: BaseException, on_failure: types.OnFailure
) -> None:
    answers: list[Any] = ["session_before_tree"]
    with Client(COMMAND, session_dir=tmp_path, answers=answers, on_failure=on_failure) as client:
        converse(client)

        def answer(_: types.SessionBeforeTree, __: threading.Event) -> None:
            raise error

        client.answer("session_before_tree", answer)
        moved = client.navigate_tree(target_id="a1", on_no_answer="cancel", timeout=20)
        assert moved["cancelled"] == (on_failure == "cancel")
        if moved["cancelled"]:
            assert moved["reason"] == "cancelledByClient"
            first = "no" if isinstance(error, ValueError) else repr(error)
            assert first in moved.get("message", "") or "1" in moved.get("message", "")
            assert "\n" not in moved.get("message", "")
        else:
            assert moved["newLeafId"] == "a1"


# An answer `{"cancel": True, ...}` with an unknown member was once refused, and the client then
# counted as having no opinion.
@pytest.mark.parametrize(
    "wrong",
    [
        {"cancle": True},
        {"cancel": True, "because": "building"},
        {"cancel": True, "label": object()},
        {"summary": {"summary": "s", "usage": {"input": "many"}}},
        True,
        "no",
    ],
)
def test_an_invalid_answer_cancels(tmp_path: Path, wrong: Any) -> None:
    with Client(COMMAND, session_dir=tmp_path, answers=["session_before_tree"]) as client:
        converse(client)
        client.answer("session_before_tree", lambda *_: wrong)
        moved = client.navigate_tree(target_id="a1", timeout=20)
        assert (moved["cancelled"], moved["reason"]) == (True, "cancelledByClient")


def test_a_veto_says_who_and_why(tmp_path: Path) -> None:
    info: types.ClientInfo = {"name": "guard"}
    with Client(
        COMMAND, session_dir=tmp_path, client_info=info, answers=["session_before_tree"]
    ) as client:
        converse(client)
        veto: types.EventAnswer = {"cancel": True, "reason": "x" * 501}
        client.answer("session_before_tree", lambda *_: veto)
        moved = client.navigate_tree(target_id="a1", timeout=20)
        assert (moved["by"], moved["message"]) == ("guard", "x" * 500)


def test_an_answerer_that_never_ends_does_not_keep_the_program_alive(tmp_path: Path) -> None:
    program = (
        "import sys, threading; from treelined import Client\n"
        "with Client(sys.argv[1], session_dir=sys.argv[2], answers=['session_before_tree']) as c:\n"
        "    c.answer('session_before_tree', lambda *_: threading.Event().wait())\n"
        "    c.create_session()\n"
        "    for name in 'ab':\n"
        "        c.append_message(entry_id=name, message={'role': 'user', 'content': name})\n"
        "    print(c.navigate_tree(target_id='a', answer_timeout_ms=100)['newLeafId'])\n"
    )
    argv = [sys.executable, "-c", program, COMMAND, str(tmp_path)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("None\n", "", 0)


def test_notifications_for_answerers_are_sent_despite_opt_out(tmp_path: Path) -> None:
    unwanted: list[NotificationName] = ["session_before_tree", "event_resolved", "session_tree"]
    with Client(
        COMMAND, session_dir=tmp_path, answers=["session_before_tree"], opt_out=unwanted
    ) as client:
        converse(client)
        dismissed = threading.Event()

        def answer(_: types.SessionBeforeTree, over: threading.Event) -> None:
            if over.wait(60):
                dismissed.set()

        client.answer("session_before_tree", answer)
        client.on("session_tree", lambda _: pytest.fail("not wanted"))
        # A question that is over before its answer begins has no answer.
        client.navigate_tree(target_id="a1", answer_timeout_ms=2000)
        assert dismissed.wait(60)


def test_close_answers_open_calls_and_leaves_no_process(client: Client) -> None:
    pid = client.pid
    assert is_alive(pid)
    client.close()
    assert not is_alive(pid)
    with pytest.raises(DisconnectedError, match="is closed"):
        client.get_leaf()
    client.close()


def test_the_death_of_the_daemon_fails_every_open_call(tmp_path: Path) -> None:
    with Client(COMMAND, session_dir=tmp_path, answers=["session_before_tree"]) as client:
        sessions = [converse(client), converse(client)]
        asked = threading.Semaphore(0)

        def answer(_: types.SessionBeforeTree, over: threading.Event) -> None:
            asked.release()
            over.wait(10)

        client.answer("session_before_tree", answer)

        def go(session_id: str) -> types.Navigation:
            return client.navigate_tree(session_id=session_id, target_id="a1")

        with ThreadPoolExecutor(2) as threads:
            calls = [threads.submit(go, session) for session in sessions]
            assert all(asked.acquire(timeout=10) for _ in sessions)
            os.kill(client.pid, signal.SIGKILL)
            for call in calls:
                with pytest.raises(DisconnectedError, match="by signal 9") as caught:
                    call.result(10)
                assert caught.value.kind == "disconnected"
                assert caught.value.details["exitCode"] == -signal.SIGKILL
        assert client.closed(10).kind == "disconnected"
        with pytest.raises(ConnectionError):
            client.get_leaf()


def test_a_daemon_that_cannot_be_started_names_the_cause() -> None:
    with pytest.raises(DisconnectedError, match="cannot start /nowhere/treelined"):
        Client("/nowhere/treelined").start()
    with pytest.raises(DisconnectedError, match=r"(?s)exit code 2: .*--no-such-option"):
        Client(COMMAND, args=["--no-such-option"]).start()
    with pytest.raises(DisconnectedError, match="not a treelined daemon: it wrote 'hello'"):
        Client("echo", args=["hello"]).start()


def test_a_daemon_of_another_version_is_refused(impostor: Callable[[str], list[str]]) -> None:
    args = impostor("say(id=message['id'], result={'protocolVersion': 2})")
    with pytest.raises(VersionMismatchError) as caught:
        Client(sys.executable, args=args).start()
    assert caught.value.details == {"expected": 1, "spoken": 2}


def test_a_call_is_cancelled_at_its_deadline(impostor: Callable[[str], list[str]]) -> None:
    args = impostor(
        "if message['method'] == 'initialize': "
        "say(id=message['id'], result={'protocolVersion': 1})\n"
        "    if message['method'] == '$/cancel_request': sys.stderr.write('cancelled')"
    )
    log: list[str] = []
    with Client(sys.executable, args=args, on_log=log.append) as client:
        with pytest.raises(DeadlineError) as caught:
            client.get_leaf(timeout=0.05)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.retryable
    assert "".join(log) == "cancelled"


def test_the_log_is_read_although_on_log_fails(
    impostor: Callable[[str], list[str]],
) -> None:
    args = impostor(
        "sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); "
        "say(id=message['id'], result={'protocolVersion': 1})"
    )

    def on_log(_: str) -> None:
        raise ValueError("full")

    with Client(sys.executable, args=args, on_log=on_log) as client:
        client.call("get_leaf", {}, timeout=10)


def test_a_daemon_that_does_not_end_is_killed(impostor: Callable[[str], list[str]]) -> None:
    args = impostor("say(id=message['id'], result={'protocolVersion': 1}); time.sleep(60)")
    client = Client(sys.executable, args=args)
    client.start()
    pid = client.pid
    client.close(0.1)
    assert not is_alive(pid)
