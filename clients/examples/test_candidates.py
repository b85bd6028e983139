"""Tests of the example of candidates: with small fake agents, and with two real ones, offline."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from test_examples import HERE, client, env, text

if TYPE_CHECKING:
    from pathlib import Path

    from treelined import Client

__all__ = ["client", "env"]

SCRIPT = HERE / "candidates" / "ask_agents.py"
IMPORTS = HERE.parent.parent / "tests" / "import"
INSTALLED = HERE.parent.parent / "target" / "import"

# A fake agent. It answers each request of ACP, and a prompt with its argument.
FAKE = """
import json, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**of):
    send(method="session/update", params={"sessionId": "s", "update": of})
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "session/prompt":
        if sys.argv[1] == "fails":
            send(id=asked["id"], error={"code": 1, "message": "no quota"})
            continue
        heard = "".join(block["text"] for block in asked["params"]["prompt"])
        update(sessionUpdate="tool_call", toolCallId="c1", title="read", rawInput={"path": "a.rs"})
        update(sessionUpdate="tool_call_update", toolCallId="c1", status="completed",
               content=[{"type": "content", "content": {"type": "text", "text": "fn main"}}])
        for word in (sys.argv[1], " of ", str(len(heard))):
            content = {"type": "text", "text": word}
            update(sessionUpdate="agent_message_chunk", content=content)
        send(id=asked["id"], result={"stopReason": "end_turn"})
    else:
        send(id=asked["id"], result={"sessionId": "s", "protocolVersion": 1})
"""


def ask(
    env: dict[str, str], asked: list[str], agents: dict[str, str], said: str, cwd: Path
) -> subprocess.CompletedProcess[str]:
    named = [f"--agent={name}={command}" for name, command in agents.items()]
    command: list[str | Path] = [
        sys.executable,
        SCRIPT,
        *asked,
        "--cwd",
        cwd,
        *named,
    ]
    return subprocess.run(
        command, env=env, input=said, capture_output=True, text=True, check=False, timeout=300
    )


def begun(client: Client) -> str:
    session: str = client.create_session(name="candidates")["session"]["sessionId"]
    client.append_message(message=text("user", "Where are we?"), entry_id="u1")
    client.append_message(message=text("assistant", "Here."), entry_id="a1")
    client.close_session()
    return session


def opened(client: Client, session: str) -> tuple[str | None, list[Any]]:
    client.open_session(session_id=session)
    rows: list[Any] = list(client.list_branches()["branches"])
    return client.get_leaf()["leafId"], rows


def test_a_person_chooses(client: Client, env: dict[str, str], tmp_path: Path) -> None:
    session = begun(client)
    fake = tmp_path / "fake.py"
    fake.write_text(FAKE)
    agents = {name: f"{sys.executable} {fake} {name}" for name in ("first", "second", "fails")}
    ran = ask(env, [session, "Prompt one"], agents, "2\nit is shorter\n", tmp_path)
    assert ran.returncode == 0, ran
    assert ran.stderr == "fails: session/prompt: no quota\n"
    assert "1. first: first of " in ran.stdout
    assert "second is chosen" in ran.stdout
    leaf, rows = opened(client, session)
    path = client.get_path(entry_id=leaf)["entries"]
    said = [entry["message"]["role"] for entry in path if entry["type"] == "message"]
    assert said == ["user", "assistant", "user", "assistant", "toolResult", "assistant"]
    notes: list[Any] = [entry for entry in path if entry["type"] == "custom"]
    assert {note["data"]["reason"] for note in notes} == {"it is shorter"}
    assert {note["data"]["by"] for note in notes} == {"ask-agents"}
    groups = [row["group"] for row in rows if "group" in row]
    assert len(groups) == 3
    assert len(set(groups)) == 1


def test_nothing_chosen_moves_nobody(client: Client, env: dict[str, str], tmp_path: Path) -> None:
    session = begun(client)
    fake = tmp_path / "fake.py"
    fake.write_text(FAKE)
    agents = {"only": f"{sys.executable} {fake} only"}
    # A group has at most 256 bytes; a long question once made one that was refused.
    ran = ask(env, [session, "問" * 100], agents, "\n", tmp_path)
    assert ran.returncode == 1, ran
    assert "   only of " in ran.stdout, ran
    leaf, rows = opened(client, session)
    assert leaf == "a1"
    assert [row["isActive"] for row in rows] == [True, False]
    # At the end of the input the script once ended with a traceback.
    ended = ask(env, [session, "again"], agents, "", tmp_path)
    assert ended.returncode == 1, ended
    assert ended.stdout.endswith("Nothing is chosen; the branches stay.\n"), ended
    assert "Traceback" not in ended.stderr, ended


def opencode(folder: Path, url: str) -> tuple[str, dict[str, str]]:
    (folder / "project").mkdir()
    configuration = folder / "config" / "opencode" / "opencode.json"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(json.dumps(importlib.import_module("opencode").settings(url)))
    homes = {"DATA": "data", "CONFIG": "config", "CACHE": "cache", "STATE": "state"}
    unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {f"XDG_{kind}_HOME": str(folder / home) for kind, home in homes.items()}
    environment |= {f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted}
    return f"{INSTALLED}/opencode/bin/opencode acp", {"HOME": str(folder), **environment}


def goose(folder: Path, url: str) -> tuple[str, dict[str, str]]:
    agent: Any = importlib.import_module("goose").Agent(INSTALLED, folder, url)
    return f"{agent.program} acp", dict(agent.environment)


@pytest.mark.skipif(
    os.environ.get("TREELINED_AGENTS") != "required" and not (INSTALLED / "goose").is_dir(),
    reason="no agents: tests/import/install opencode goose",
)
def test_two_real_agents(client: Client, env: dict[str, str], tmp_path: Path) -> None:
    sys.path.insert(0, str(IMPORTS))
    # The stand-in for a model answers messages that begin with a prompt of a test.
    session: str = client.create_session(name="candidates")["session"]["sessionId"]
    client.close_session()
    with importlib.import_module("model").Model() as model:
        agents = {}
        for name, prepare in {"opencode": opencode, "goose": goose}.items():
            folder = tmp_path / name
            folder.mkdir()
            command, environment = prepare(folder, model.url)
            given = " ".join(f"{key}='{value}'" for key, value in environment.items())
            agents[name] = f'sh -c "{given} exec {command}"'
        asked, cwd = [session, "Prompt one"], tmp_path / "opencode" / "project"
        ran = ask(env, asked, agents, "1\nboth say the same\n", cwd)
    assert ran.returncode == 0, ran
    assert "opencode is chosen" in ran.stdout, ran
    leaf, rows = opened(client, session)
    rows = [row for row in rows if "group" in row]
    assert len(rows) == 2, rows
    path = client.get_path(entry_id=leaf)["entries"]
    answer: Any = next(entry for entry in reversed(path) if entry["type"] == "message")
    assert "Prompt one" in answer["message"]["content"][0]["text"]
    for row in rows:
        assert "Prompt one" in row["preview"], rows
