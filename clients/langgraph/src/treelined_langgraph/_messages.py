"""Messages of LangChain as messages of a session, exact in both directions.

A message entry has the message as every client of treelined reads it, and beside it the member
`langgraph` with what else the message of LangChain has. Nothing is there twice.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ._plain import copy, is_plain

KINDS: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
    "toolResult": ToolMessage,
}
ROLES = {kind: role for role, kind in KINDS.items()}
DEFAULTS = {
    role: kind(content="", **({"tool_call_id": ""} if role == "toolResult" else {})).model_dump()
    for role, kind in KINDS.items()
}


def to_entry(message: BaseMessage) -> dict[str, Any] | None:
    """Return the members of the entry, or None if the message has no exact form."""
    role = ROLES.get(type(message))
    if role is None:
        return None
    members = message.model_dump()
    content = _blocks(members.pop("content"))
    if content is None:
        return None
    said: dict[str, Any] = {"role": role}
    if role == "assistant":
        calls = members.pop("tool_calls")
        if not all(_is_call(call) for call in calls):
            return None
        said["content"] = _as_list(content) + [
            {"type": "toolCall", "id": call["id"], "name": call["name"], "arguments": call["args"]}
            for call in calls
        ]
    elif role == "toolResult":
        said["toolCallId"] = members.pop("tool_call_id")
        said["content"] = _as_list(content)
        if members.pop("status") == "error":
            said["isError"] = True
    else:
        said["content"] = content
    rest = {name: value for name, value in members.items() if value != DEFAULTS[role].get(name)}
    rest.pop("type", None)
    if role in ("assistant", "toolResult") and isinstance(content, list):
        # A list of blocks; a text is one block too.
        rest["blocks"] = True
    entry = {"message": said, "langgraph": rest}
    return entry if is_plain(entry) else None


def from_entry(entry: dict[str, Any]) -> BaseMessage:
    """Return a new message of an entry that `to_entry` made."""
    said = copy(entry["message"])
    rest = copy(entry["langgraph"])
    role = said["role"]
    content = said["content"]
    if role in ("assistant", "toolResult"):
        is_list = rest.pop("blocks", False)
        if role == "assistant":
            calls = [block for block in content if block["type"] == "toolCall"]
            content = [block for block in content if block["type"] != "toolCall"]
            rest["tool_calls"] = [
                {
                    "name": call["name"],
                    "args": call["arguments"],
                    "id": call["id"],
                    "type": "tool_call",
                }
                for call in calls
            ]
        else:
            rest["tool_call_id"] = said["toolCallId"]
            rest["status"] = "error" if said.get("isError") else "success"
        if not is_list:
            content = content[0]["text"] if content else ""
    return KINDS[role](content=content, **rest)


def _is_call(call: Any) -> bool:  # noqa: ANN401
    return set(call) == {"name", "args", "id", "type"} and isinstance(call["id"], str)


def _as_list(content: str | list[Any]) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _blocks(content: Any) -> str | list[Any] | None:  # noqa: ANN401
    """Return the content if every block of it is one that a session takes as it is."""
    if isinstance(content, str):
        return content
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind in ("image", "toolCall"):
            return None
        if kind in ("text", "thinking") and not isinstance(block.get(kind), str):
            return None
    return list(content)
