"""Converts items of the SDK to entries of a session, and back.

The restored items are equal as JSON, with their members in the same order. An entry stores the text
of its item once, in a message that every client of treelined shows. The member `openaiAgents` of
the entry has the rest of the item. In place of each text it has `{"$": INDEX}`, where INDEX is the
number of the block of the message with this text. An item that is not a message, a call, a result
or a thought becomes the `data` of a custom entry.
"""

from __future__ import annotations

import json
from typing import Any

BESIDE = "openaiAgents"
CUSTOM = "openai-agents.item"
TEXTS = {"input_text", "output_text", "text", "summary_text", "reasoning_text"}

Json = dict[str, Any]


def entry_of(item: Json, calls: dict[str, str]) -> Json:
    """Return the entry of an item. `calls` has the tools of earlier calls by the calls' ids."""
    made = _message(item, calls)
    if made is None:
        return {"type": "custom", "customType": CUSTOM, "data": item}
    message, rest = made
    entry = {"type": "message", "message": message, BESIDE: rest}
    # The item itself contains a placeholder, so the whole item is stored.
    if json.dumps(item_of(entry)) != json.dumps(item):
        return {"type": "custom", "customType": CUSTOM, "data": item}
    return entry


def item_of(entry: Json) -> Json | None:
    """Return the item of an entry; None for other entries."""
    if entry.get("type") == "custom" and entry.get("customType") == CUSTOM:
        data = entry.get("data")
        return data if isinstance(data, dict) else None
    rest = entry.get(BESIDE)
    if entry.get("type") != "message":
        return None
    content = entry["message"].get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if isinstance(rest, dict):
        filled = _fill(rest, blocks)
        return filled if isinstance(filled, dict) else None
    return _foreign(entry["message"], blocks)


def _foreign(message: Json, blocks: list[Json]) -> Json | None:
    """Return the item for a message of another client, if the message is text."""
    texts = [block["text"] for block in blocks if block.get("type") == "text"]
    role = message.get("role")
    if role not in ("user", "assistant") or not texts:
        return None
    return {"role": role, "content": "\n".join(texts)}


def _message(item: Json, calls: dict[str, str]) -> tuple[Json, Json] | None:
    kind = item.get("type", "message")
    role = item.get("role")
    if kind == "message" and role in ("user", "assistant"):
        if (made := _content(item.get("content"))) is None:
            return None
        blocks, rest = made
        return {"role": role, "content": blocks}, {**item, "content": rest}
    if kind == "reasoning" and (made := _content(item.get("summary"))) is not None:
        blocks, rest = made
        thoughts = [{"type": "thinking", "thinking": block["text"]} for block in blocks]
        return {"role": "assistant", "content": thoughts}, {**item, "summary": rest}
    if kind == "function_call" and isinstance(item.get("call_id"), str):
        return _call(item)
    if kind == "function_call_output" and isinstance(item.get("call_id"), str):
        return _result(item, calls)
    return None


def _call(item: Json) -> tuple[Json, Json]:
    text = item.get("arguments")
    rest = dict(item)
    try:
        arguments = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        arguments = {}
    if not isinstance(arguments, dict):
        arguments = {}
    form = next((form for form in _FORMS if json.dumps(arguments, **form) == text), None)
    if form is not None:
        rest["arguments"] = {"$": 0, "form": _FORMS.index(form)}
    block = {
        "type": "toolCall",
        "id": item["call_id"],
        "name": str(item.get("name", "")),
        "arguments": arguments,
    }
    return {"role": "assistant", "content": [block]}, rest


def _result(item: Json, calls: dict[str, str]) -> tuple[Json, Json] | None:
    made = _content(item.get("output"))
    if made is None:
        return None
    blocks, rest = made
    message = {
        "role": "toolResult",
        "toolCallId": item["call_id"],
        "toolName": calls.get(item["call_id"], ""),
        "content": blocks,
        "isError": False,
    }
    return message, {**item, "output": rest}


def _content(content: Any) -> tuple[list[Json], Any] | None:  # noqa: ANN401
    """Return the blocks of a content, and the rest; None if the content has no text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}], {"$": 0}
    if not isinstance(content, list):
        return None
    blocks: list[Json] = []
    rest: list[Any] = []
    for part in content:
        is_text = isinstance(part, dict) and part.get("type") in TEXTS
        if is_text and isinstance(part.get("text"), str):
            rest.append({**part, "text": {"$": len(blocks)}})
            blocks.append({"type": "text", "text": part["text"]})
        else:
            rest.append(part)
    return (blocks, rest) if blocks else None


_FORMS: list[Json] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {"ensure_ascii": False},
    {"separators": (",", ":")},
    {},
]
"""The formats in which models and the SDK write arguments, as options of `json.dumps`."""


def _fill(rest: Any, blocks: list[Json]) -> Any:  # noqa: ANN401
    """Put the texts of a message back in place of the placeholders of `_message`."""
    if not isinstance(rest, dict):
        return rest
    item = dict(rest)
    for name in ("content", "summary", "output"):
        value = item.get(name)
        if isinstance(value, list):
            item[name] = [_part(part, blocks) for part in value]
        elif (place := _place(value)) is not None:
            item[name] = _text(blocks, place)
    arguments = item.get("arguments")
    form = arguments.get("form") if isinstance(arguments, dict) else None
    if isinstance(form, int) and 0 <= form < len(_FORMS) and blocks:
        item["arguments"] = json.dumps(blocks[0].get("arguments"), **_FORMS[form])
    return item


def _part(part: Any, blocks: list[Json]) -> Any:  # noqa: ANN401
    place = _place(part.get("text")) if isinstance(part, dict) else None
    return part if place is None else {**part, "text": _text(blocks, place)}


def _place(value: Any) -> int | None:  # noqa: ANN401
    index = value.get("$") if isinstance(value, dict) else None
    return index if isinstance(index, int) else None


def _text(blocks: list[Json], index: int) -> str:
    block = blocks[index] if 0 <= index < len(blocks) else {}
    text = block.get("thinking", block.get("text"))
    return text if isinstance(text, str) else ""
