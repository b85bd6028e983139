"""Tests of the examples with the real daemon."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from treelined import Client, types

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
DAEMON = shutil.which(os.environ.get("TREELINED_BIN", "treelined"))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment with the daemon on the PATH and a temporary session directory."""
    assert DAEMON is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "treelined").symlink_to(Path(DAEMON).resolve())
    return {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "TREELINED_SESSION_DIR": str(tmp_path / "sessions"),
        "PYTHONUTF8": "1",
    }


@pytest.fixture
def client(env: dict[str, str]) -> Iterator[Client]:
    """Return a client for the same sessions."""
    with Client(env=env, command=str(DAEMON)) as client:
        yield client


def run(env: dict[str, str], *command: str | Path, cwd: Path = HERE) -> str:
    ran = subprocess.run(
        command, env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout


def text(role: Literal["user", "assistant"], said: str) -> types.Message:
    content: list[types.ContentBlock] = [{"type": "text", "text": said}]
    if role == "user":
        return {"role": "user", "content": content}
    return {"role": "assistant", "content": content}


def call(call_id: str, command: str) -> types.AssistantMessage:
    arguments = {"command": command}
    return {
        "role": "assistant",
        "content": [{"type": "toolCall", "id": call_id, "name": "bash", "arguments": arguments}],
    }


def result(call_id: str, *, failed: bool, said: str = "what it printed") -> types.ToolResultMessage:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": "bash",
        "isError": failed,
        "content": [{"type": "text", "text": said}],
    }


def shell(command: str, *, cancelled: bool = False) -> types.BashExecutionMessage:
    """Return a shell command of the user that has failed."""
    return {
        "role": "bashExecution",
        "command": command,
        "output": "",
        "exitCode": 1,
        "cancelled": cancelled,
    }


def append(client: Client, **messages: types.Message) -> None:
    for entry_id, message in messages.items():
        client.append_message(entry_id=entry_id, message=message)


def test_failed_test_runs_are_bookmarked_once(env: dict[str, str], client: Client) -> None:
    session = client.create_session()["session"]["sessionId"]
    append(
        client,
        u1=text("user", "make it green"),
        c1=call("1", "cargo test --workspace"),
        failed1=result("1", failed=True),
        c2=call("2", "ls nowhere"),
        failed2=result("2", failed=True),
        c3=call("3", "npm test\n  --silent"),
        failed3=result("3", failed=True),
        c4=call("4", "cargo test"),
        passed=result("4", failed=False),
        run={"role": "bashExecution", "command": "pytest -x", "output": "", "exitCode": 1},
        a1=text("assistant", "done"),
    )
    client.append_label(target_id="failed3", label="mine")
    client.set_leaf(leaf_id="a1")
    client.close_session()

    script = HERE / "bookmark-failing-tests.sh"
    expected = "failed1  failed: cargo test --workspace\nrun  failed: pytest -x\n"
    assert run(env, script, session) == expected
    assert run(env, script, session) == "nothing to bookmark\n"

    client.open_session(session_id=session)
    rows = client.get_tree(filter="labeled-only")["nodes"]
    assert {row["id"]: row["label"] for row in rows} == {
        "failed1": "failed: cargo test --workspace",
        "failed3": "mine",
        "run": "failed: pytest -x",
    }
    assert client.get_leaf()["leafId"] == "a1"


CARGO_FAILED = "running 3 tests\ntest result: FAILED. 2 passed; 1 failed; 0 ignored"
CARGO_PASSED = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored"

# For each command: whether the call failed, its output, and the expected label.
RUNS: list[tuple[str, bool, str, str | None]] = [
    # Commands that only mention tests.
    ("grep -rn test src", True, "", None),
    ("grep -rn 'cargo test' . && ls", True, "", None),
    ('git commit -m "cargo test && npm test"', True, "nothing to commit", None),
    ("test -f Cargo.toml", True, "", None),
    ("cat > t.sh <<'END'\ncargo test\nEND", True, "read-only", None),
    ("# cargo test\nls nowhere", True, "", None),
    ("npm install jest", True, "404", None),
    ("cargo test --no-run", True, "error[E0425]", None),
    ("pytest --collect-only", True, "1 error", None),
    ("make -C test all", True, "", None),
    # Test runs, however they are started.
    (
        "cd a && CI=1 cargo +nightly test -p b",
        True,
        "",
        "CI=1 cargo +nightly test -p b",
    ),
    ("bash -lc 'go vet ./... && go test ./...'", True, "", "go test ./..."),
    ("timeout 60 npx --yes vitest run", True, "", "timeout 60 npx --yes vitest run"),
    ("python3 -m pytest tests/", True, "", "python3 -m pytest tests/"),
    ("./gradlew :app:test", True, "", "./gradlew :app:test"),
    ("./run_tests.sh --fast", True, "", "./run_tests.sh --fast"),
    # The exit code comes from another command, so the output decides.
    ("cargo test 2>&1 | tail -5", False, CARGO_FAILED, "cargo test"),
    ("cargo test | grep nothing", True, "", None),
    ("cargo test; grep -n x y", True, CARGO_PASSED, None),
    ("cargo test && grep -n x y", True, CARGO_PASSED, None),
    ("cargo test || true", False, CARGO_FAILED, "cargo test"),
    ("pytest -q | tail -1", False, "5 passed in 0.1s", None),
    # The tests did not run, or did not fail.
    ("pytest", True, "sh: pytest: command not found", None),
    ("cargo test", True, "Command aborted", None),
    ("npm test", False, "a test says: 1 failed", None),
]


def test_only_test_runs_that_failed_are_bookmarked(env: dict[str, str], client: Client) -> None:
    """A search for tests that found nothing was once labelled as a failed test run."""
    session = client.create_session()["session"]["sessionId"]
    append(client, u1=text("user", "make it green"))
    expected = ""
    for number, (command, failed, said, run_of_tests) in enumerate(RUNS):
        append(client, **{f"c{number}": call(f"k{number}", command)})
        append(client, **{f"r{number}": result(f"k{number}", failed=failed, said=said)})
        if run_of_tests is not None:
            expected += f"r{number}  failed: {run_of_tests}\n"
    append(client, grep=shell("grep -rn pytest ."), cancelled=shell("pytest", cancelled=True))
    client.close_session()
    assert run(env, HERE / "bookmark-failing-tests.sh", session) == expected


def test_bookmarking_reports_errors(env: dict[str, str]) -> None:
    script = HERE / "bookmark-failing-tests.sh"
    ran = subprocess.run([script, "nowhere"], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "nowhere" in ran.stderr


def test_abandoned_branches_are_summarized_once(
    env: dict[str, str], client: Client, tmp_path: Path
) -> None:
    cwd = tmp_path / "project"
    cwd.mkdir()
    client.create_session(cwd=str(cwd), name="two ways")
    append(client, u1=text("user", "a plan"), a1=text("assistant", "which way?"))
    for way in ("left", "right", "on"):
        append(client, **{f"u-{way}": text("user", way), f"a-{way}": text("assistant", f"{way}!")})
        if way != "on":
            client.set_leaf(leaf_id="a1")
    session = client.get_tree()
    assert len(client.list_branches()["branches"]) == 3
    assert session["leafId"] == "a-on"
    client.close_session()
    client.create_session(cwd=str(tmp_path), name="elsewhere")
    append(client, u1=text("user", "not to be touched"))
    client.close_session()

    script: list[str | Path] = [sys.executable, HERE / "summarize_abandoned_branches.py"]
    assert run(env, *script, cwd=cwd) == "two ways: 2 summarized\n"
    assert run(env, *script, "--cwd", cwd) == "two ways: 0 summarized\n"

    (row,) = client.list_sessions(cwd=str(cwd))["sessions"]
    client.open_session(session_id=row["sessionId"])
    path: list[Any] = client.get_path()["entries"]
    summaries = [entry for entry in path if entry["type"] == "branch_summary"]
    assert [entry["fromId"] for entry in summaries] == ["a-left", "a-right"]
    assert "left" in summaries[0]["summary"]
    assert [entry["id"] for entry in path[1:5]] == ["u1", "a1", "u-on", "a-on"]


def test_navigation_is_vetoed_while_the_build_runs(
    env: dict[str, str], client: Client, tmp_path: Path
) -> None:
    session = client.create_session()["session"]["sessionId"]
    append(client, u1=text("user", "build it"), a1=text("assistant", "so be it"))
    append(client, u2=text("user", "and more"), a2=text("assistant", "and more"))
    client.close_session()

    done = tmp_path / "done"
    build = f"while [ ! -e '{done}' ]; do sleep 0.05; done"
    bun = HERE / "node_modules" / ".bin" / "bun"
    script: list[str | Path] = [bun, HERE / "veto-while-building.ts", session]
    with subprocess.Popen(
        [*script, "--", "sh", "-c", build],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None

        def heard() -> str:
            assert running.stdout is not None
            line: str = running.stdout.readline()
            return line.rstrip("\n")

        def say(line: str) -> None:
            assert running.stdin is not None
            running.stdin.write(f"{line}\n")

        assert heard() == "ready"
        say("a1")
        assert heard() == "a1: the build is running"
        done.touch()
        assert heard() == "the build has ended with 0"
        say("a1")
        assert heard() == "a1: the leaf is a1"
        say("nothing")
        assert heard().startswith("nothing: navigate_tree: ")
        running.stdin.close()
        assert running.wait(20) == 0

    client.open_session(session_id=session)
    assert client.get_leaf()["leafId"] == "a1"


def test_the_shortest_example_lists_sessions(env: dict[str, str], client: Client) -> None:
    client.create_session()
    append(client, u1=text("user", "a first message"), a1=text("assistant", "an answer"))
    found = re.search(r"```sh\n(printf.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    assert found is not None
    assert run(env, "sh", "-c", found[1]) == "2\ta first message\n"
