"""The types of entries and messages. Type checkers refuse this file if the types lose precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treelined import types


def told(entry: types.Entry) -> str:
    if entry["type"] == "message":
        return said(entry["message"])
    if entry["type"] == "label":
        return entry.get("label") or "no label"
    if entry["type"] == "branch_summary":
        return entry["summary"]
    if entry["type"] == "compaction":
        return f"{entry['summary']} {entry['tokensBefore']}"
    return entry["type"]


def said(message: types.Message) -> str:
    if message["role"] == "user":
        content = message["content"]
        return content if isinstance(content, str) else " ".join(map(shown, content))
    if message["role"] == "assistant":
        usage = message.get("usage")
        spent = usage.get("totalTokens") if usage else None
        return f"{' '.join(map(shown, message['content']))} {spent} {message.get('stopReason')}"
    if message["role"] == "toolResult":
        return f"{message['toolCallId']} {message.get('toolName')} {message.get('isError')}"
    if message["role"] == "bashExecution":
        return message["command"] + message["output"]
    return message["role"]


def shown(block: types.ContentBlock) -> str:
    if block["type"] == "text":
        return block["text"]
    if block["type"] == "toolCall":
        return block["name"]
    return block["type"]


def test_comparing_the_type_of_an_entry_and_the_role_of_a_message_narrows_them() -> None:
    """The type of a message was once any dictionary, and no type excluded unknown entries."""
    messages: list[types.Message] = [
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "c", "name": "read"}],
            "usage": {"totalTokens": 7},
        },
        {"role": "toolResult", "toolCallId": "c", "content": [], "isError": True},
    ]
    assert [said(message) for message in messages] == ["hello", "read 7 None", "c None True"]
    entry: types.Entry = {
        "type": "label",
        "id": "b",
        "parentId": None,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "targetId": "a",
        "label": "here",
    }
    assert told(entry) == "here"
