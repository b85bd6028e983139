"""Tests of the SDK with a store, and with a stand-in for Claude Code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    list_sessions_from_store,
    project_key_for_directory,
    query,
)

from treelined_claude_agent_sdk import TreelinedSessionStore
from treelined_claude_agent_sdk._keys import session_of

if TYPE_CHECKING:
    from treelined import Client


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    program = tmp_path / "claude"
    stub = Path(__file__).parent / "claude_code.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{stub}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("STUB_PROJECT", project_key_for_directory(tmp_path / "project"))
    return str(program)


async def test_a_conversation_goes_on_from_the_store_and_branches(
    client: Client, tmp_path: Path, program: str
) -> None:
    store = TreelinedSessionStore(client)
    project = tmp_path / "project"

    async def ask(prompt: str, **options: Any) -> tuple[ResultMessage, str]:
        given = ClaudeAgentOptions(
            session_store=store, cli_path=program, cwd=str(project), **options
        )
        uuid = ""
        async for message in query(prompt=prompt, options=given):
            if isinstance(message, AssistantMessage):
                uuid = str(message.uuid)
            if isinstance(message, ResultMessage):
                result = message
        return result, uuid

    first, answer = await ask("Plan a trip.")
    session = first.session_id
    # The program gets the transcript from the store, so it does not need its own files.
    (file,) = (tmp_path / "home").rglob("*.jsonl")
    file.unlink()
    second, _ = await ask("By plane.", resume=session)
    assert second.result == "Plan a trip. / By plane."
    third, _ = await ask("By train.", resume=session, resume_session_at=answer)
    assert third.result == "Plan a trip. / By train."

    (info,) = await list_sessions_from_store(store, str(project))
    assert (info.session_id, info.first_prompt) == (session, "Plan a trip.")
    here = session_of((project_key_for_directory(project), session))
    client.open_session(session_id=here)
    rows = client.list_branches(session_id=here)["branches"]
    assert [(row["name"], row["isActive"]) for row in rows] == [
        ("By plane.", False),
        ("By train.", True),
    ]
    assert client.list_sessions()["sessions"][0]["cwd"] == str(project)
