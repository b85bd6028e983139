"""Fixtures of the tests: stores with the daemon `TREELINED_BIN`, and records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from treelined import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(session_dir=str(tmp_path / "sessions")) as client:
        yield client


def said(uuid: str, parent: str | None, text: str, **more: Any) -> Any:
    """Return a record of a prompt."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": "/home/ada/project",
        "sessionId": "s",
        "type": "user",
        "message": {"role": "user", "content": text},
        "uuid": uuid,
        "timestamp": "2026-03-01T09:30:00.000Z",
        **more,
    }


def answered(uuid: str, parent: str, *content: Any, **more: Any) -> Any:
    """Return a record of an answer."""
    message = {
        "id": f"msg_{uuid}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(content),
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }
    return {**said(uuid, parent, ""), "type": "assistant", "message": message, **more}


def text(words: str) -> Any:
    return {"type": "text", "text": words}


def called(call: str, name: str, **given: Any) -> Any:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(uuid: str, parent: str, call: str, content: Any, **more: Any) -> Any:
    """Return a record of the result of a tool."""
    part = {"tool_use_id": call, "type": "tool_result", "content": content, **more}
    return said(uuid, parent, "", message={"role": "user", "content": [part]})
