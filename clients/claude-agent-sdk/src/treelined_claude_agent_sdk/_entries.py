"""Converts records of a transcript to entries of a session, and back.

The restored records are equal as JSON, with their members in the same order. Each record becomes
one entry. If it is a message, a compaction or a name, the values that treelined stores in the entry
are not stored twice: the member `claude` of the entry has the rest of the record, with a `0` in
place of each such value, and without usual names and values (`_orders`). A record of another kind
becomes the `data` of a custom entry, with a `0` in the same places. A record that already has a `0`
in such a place, or that is nested too deeply, is stored as text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from treelined_claude_agent_sdk._keys import HEAD, entry_id
from treelined_claude_agent_sdk._orders import MESSAGES, RECORDS, long, short, usual_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Json = dict[str, Any]

BESIDE = "claude"
CUSTOM = "claude-agent-sdk.record"
DEPTH = 200
"""The most levels of a stored record. The daemon accepts entries of 256 levels."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "toolUse",
    "max_tokens": "length",
    "refusal": "error",
}
_SPEAKERS = ("user", "assistant")
_Slots = dict[str, tuple[str, type]]
"""The members of a block, with their names in treelined and their types."""
_BLOCKS: dict[str, tuple[str, _Slots]] = {
    "text": ("text", {"text": ("text", str)}),
    "thinking": ("thinking", {"thinking": ("thinking", str)}),
    "tool_use": (
        "toolCall",
        {"id": ("id", str), "name": ("name", str), "input": ("arguments", dict)},
    ),
}
_PARTS = {kind: (name, slots) for name, (kind, slots) in _BLOCKS.items()}
# A message with one result becomes a tool result. Several results in one message stay as they are.
_RESULT: _Slots = {"tool_use_id": ("", str), "content": ("", str)}
_IMAGE: _Slots = {"data": ("data", str), "media_type": ("mimeType", str)}


class _AsTextError(Exception):
    """The record has a `0` where a `0` stands for a value, so it is stored as text."""


def is_hole(value: object) -> bool:
    """Return whether the value is a placeholder for a value of the entry."""
    # `0.0` is the same number in JavaScript.
    return type(value) in (int, float) and value == 0


@dataclass
class Turn:
    """The newest answer: its lines and the lines of its results, each below the one before.

    Claude writes one line for each block of an answer, and puts each result below the line of its
    call. With `parentUuid` alone, several calls at once would become branches.
    """

    message: str | None = None
    ids: set[str] = field(default_factory=set)
    tail: str = ""
    tools: dict[str, str] = field(default_factory=dict)
    """The names of tools by the ids of calls that have no result yet."""

    def copy(self) -> Turn:
        """Return a copy. An append changes the copy, and may fail."""
        return Turn(self.message, set(self.ids), self.tail, dict(self.tools))

    def place(self, record: Json, name: str | None, parent: str | None) -> str | None:
        """Return the parent of a record in the tree, and add the record to the turn."""
        message = record.get("message")
        kind, inner = record.get("type"), message if isinstance(message, dict) else {}
        is_inside = parent is not None and parent in self.ids
        if kind == "user" and not _is_result(inner):
            # A prompt begins a branch at any position, so the answer has ended.
            self.ids.clear()
            return parent
        if kind == "assistant" and (self.message is None or inner.get("id") != self.message):
            parent = self.tail if is_inside else parent
            self.message = inner["id"] if isinstance(inner.get("id"), str) else None
            self.ids.clear()
        elif is_inside:
            parent = self.tail
        elif kind != "assistant":
            return parent
        if name is not None:
            self.ids.add(name)
            self.tail = name
        return parent


def entry_of(record: Json, session: str, turn: Turn, unknown: Collection[str]) -> Json:
    """Return the entry of a record of the session `session`. The record follows `turn`.

    `unknown` has ids that no entry of the session has, so that the entry cannot be a child of them.
    """
    entry: Json = {"type": "custom"}
    uuid, stamp = record.get("uuid"), record.get("timestamp")
    if (name := entry_id(uuid)) is not None:
        entry["id"] = name
    parent = turn.place(record, name, _parent(record))
    if parent is not None and parent not in unknown:
        entry["parentId"] = parent
    if isinstance(stamp, str) and _is_time(stamp):
        entry["timestamp"] = stamp
    try:
        members, rest = _members(record, turn.tools)
        if _text_in(rest) is not None:
            raise _AsTextError
        _empty(rest, "uuid", is_there=name is not None and name == uuid)
        is_child = "parentId" in entry and parent == record.get("parentUuid")
        _empty(rest, "parentUuid", is_there=is_child)
        _empty(rest, "timestamp", is_there="timestamp" in entry)
        _empty(rest, "sessionId", is_there=rest.get("sessionId") == session)
    except _AsTextError:
        return as_text(entry, record)
    entry.update(members)
    if entry["type"] == "custom":
        entry["data"] = rest
        return entry
    usual, in_message = usual_of(entry)
    if isinstance(rest.get("message"), dict) and rest.get("type") in _SPEAKERS:
        rest["message"] = short(rest["message"], MESSAGES, in_message)
    entry[BESIDE] = short(rest, RECORDS, usual)
    return entry


def as_text(entry: Json, record: Json) -> Json:
    """Return the entry with the record as text."""
    kept = {name: entry[name] for name in entry if name in ("id", "parentId", "timestamp")}
    text = json.dumps(record, separators=(",", ":"))
    return {"type": "custom", **kept, "customType": CUSTOM, "data": {"json": text}}


def record_of(entry: Json, session: str) -> Json | None:
    """Return the record of an entry; None for other entries.

    The entry must not be used afterwards, since its parts become parts of the record.
    """
    usual, in_message = usual_of(entry)
    rest = long(entry.get(BESIDE), RECORDS, usual)
    if rest is None and entry.get("customType") == CUSTOM:
        rest = entry.get("data")
    elif isinstance(rest, dict) and rest.get("type") in _SPEAKERS:
        rest["message"] = long(rest.get("message"), MESSAGES, in_message)
    # `cherry_pick` and merges copy entries. A copy is not a second record.
    if not isinstance(rest, dict) or "copiedFrom" in entry:
        return None
    if (text := _text_in(rest)) is not None:
        record: Json = json.loads(text)
        return record
    for name, source in (("uuid", "id"), ("parentUuid", "parentId"), ("timestamp", "timestamp")):
        if is_hole(rest.get(name)):
            rest[name] = entry.get(source)
    if is_hole(rest.get("sessionId")):
        rest["sessionId"] = session
    _fill(rest, entry)
    return rest


def is_deep(value: object) -> bool:
    """Return whether the value is nested more than `DEPTH` levels deep."""
    level = [value]
    for _ in range(DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _text_in(rest: Json) -> str | None:
    text = rest.get("json")
    return text if isinstance(text, str) and len(rest) == 1 else None


def _is_result(message: Json) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)


def _parent(record: Json) -> str | None:
    """Return the id of the parent; None if the record has none."""
    if "parentUuid" not in record:
        return None
    # After a compaction the conversation continues at the same position.
    parent = record["parentUuid"] or record.get("logicalParentUuid")
    return entry_id(parent) or HEAD


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text) or not text.isascii():
        return False
    try:
        datetime.fromisoformat(text[:-1])
    except ValueError:
        return False
    return True


def _check(members: Json, *names: str) -> None:
    if any(is_hole(members.get(name)) for name in names):
        raise _AsTextError


def _empty(members: Json, name: str, *, is_there: bool) -> None:
    """Replace a value by a placeholder if the entry has the value."""
    _check(members, name)
    if is_there:
        members[name] = 0


def _members(record: Json, tools: dict[str, str]) -> tuple[Json, Json]:
    """Return the members of the entry, and the record without the values in these members."""
    kind, message = record.get("type"), record.get("message")
    made = None
    if kind in _SPEAKERS and isinstance(message, dict):
        _check(message, "content", "model")
        made = _user(record, message, tools) if kind == "user" else _assistant(record, message)
        for block in made[0].get("message", {}).get("content", ()) if made else ():
            if isinstance(block, dict) and block["type"] == "toolCall":
                tools[block["id"]] = block["name"]
    elif kind == "custom-title":
        made = _name(record)
    elif kind == "attachment":
        made = _queued(record)
    if made is None:
        return {"customType": CUSTOM}, {**record}
    return made


def _name(record: Json) -> tuple[Json, Json] | None:
    title = record.get("customTitle")
    _check(record, "customTitle")
    # The daemon stores a name as one trimmed line, so another name would change.
    if not isinstance(title, str) or not title.isprintable() or title.strip() != title or not title:
        return None
    return {"type": "session_info", "name": title}, {**record, "customTitle": 0}


def _queued(record: Json) -> tuple[Json, Json] | None:
    """Return the entry for text that a person wrote while the model worked."""
    attachment = record.get("attachment")
    if not isinstance(attachment, dict):
        return None
    prompt = attachment.get("prompt")
    _check(attachment, "prompt")
    if attachment.get("type") != "queued_command" or not isinstance(prompt, str):
        return None
    if prompt.startswith("<"):  # It is a notice of the program.
        return None
    message = {"role": "user", "content": prompt}
    rest = {**record, "attachment": {**attachment, "prompt": 0}}
    return {"type": "message", "message": message}, rest


def _user(record: Json, message: Json, tools: dict[str, str]) -> tuple[Json, Json] | None:
    content = message.get("content")
    if (made := _content(content)) is None:
        return _result(record, message, tools)
    shown, rest = made
    beside = {**record, "message": {**message, "content": rest}}
    if record.get("isCompactSummary") is True and isinstance(shown, str):
        # The record does not contain the number of tokens before the compaction.
        members = {"type": "compaction", "summary": shown}
        return {**members, "firstKeptEntryId": None, "tokensBefore": 0}, beside
    if record.get("isMeta") is True:
        members = {"type": "custom_message", "customType": "claude-code.meta"}
        return {**members, "content": shown, "display": False}, beside
    return {"type": "message", "message": {"role": "user", "content": shown}}, beside


def _result(record: Json, message: Json, tools: dict[str, str]) -> tuple[Json, Json] | None:
    """Return the entry for a message with exactly one result."""
    content = message.get("content")
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return None
    part = content[0]
    call = part.get("tool_use_id")
    if part.get("type") != "tool_result" or not isinstance(call, str):
        return None
    shown, rest = _content(part.get("content")) or ([], part.get("content"))
    result: Json = {"role": "toolResult", "toolCallId": call}
    if call in tools:
        result["toolName"] = tools.pop(call)
    blocks = shown if isinstance(shown, list) else [{"type": "text", "text": shown}]
    result |= {"content": blocks, "isError": part.get("is_error") is True}
    emptied = {**part, "tool_use_id": 0}
    if "content" in part:
        emptied["content"] = rest
    beside = {**record, "message": {**message, "content": [emptied]}}
    printed = record.get("toolUseResult")
    if isinstance(printed, dict):
        _check(printed, "stdout")
        # The result of a command has the text a second time.
        if isinstance(shown, str) and printed.get("stdout") == shown:
            beside["toolUseResult"] = {**printed, "stdout": 0}
    return {"type": "message", "message": result}, beside


def _assistant(record: Json, message: Json) -> tuple[Json, Json] | None:
    if (made := _content(message.get("content"))) is None:
        return None
    shown, rest = made
    blocks = shown if isinstance(shown, list) else [{"type": "text", "text": shown}]
    said: Json = {"role": "assistant", "content": blocks, "provider": "anthropic"}
    beside = {**message, "content": rest}
    if isinstance(message.get("model"), str):
        said["model"], beside["model"] = message["model"], 0
    stop = "error" if record.get("isApiErrorMessage") is True else message.get("stop_reason")
    if isinstance(stop, str) and (stop in _STOPS or stop == "error"):
        said["stopReason"] = _STOPS.get(stop, stop)
    return {"type": "message", "message": said}, {**record, "message": beside}


def _content(content: Any) -> tuple[Any, Any] | None:  # noqa: ANN401
    """Return the shown part of a content, and the rest; None if no part is shown."""
    if isinstance(content, str):
        return content, 0
    _check({"content": content}, "content")
    if not isinstance(content, list):
        return None
    blocks: list[Json] = []
    rest = []
    for part in content:
        _check({"part": part}, "part")
        block, left = _block(part)
        rest.append(left)
        if block is not None:
            blocks.append(block)
    return (blocks, rest) if blocks else None


def _block(part: Any) -> tuple[Json | None, Any]:  # noqa: ANN401
    """Return the block and the rest of a part; None if treelined has no such block."""
    if (found := _slots(part)) is None:
        return None, part
    kind, holder, slots = found
    _check(holder, *slots)
    if not kind or not all(isinstance(holder.get(name), is_a) for name, (_, is_a) in slots.items()):
        return None, part
    block = {"type": kind} | {shown: holder[name] for name, (shown, _) in slots.items()}
    if list(part) == ["type", *slots]:
        return block, 0
    emptied = {**holder, **dict.fromkeys(slots, 0)}
    return block, emptied if holder is part else {**part, "source": emptied}


def _slots(part: Any) -> tuple[str, Json, _Slots] | None:  # noqa: ANN401
    """Return the type of the block, the object with its members, and these members."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind == "image":
        source = part.get("source")
        return ("image", source, _IMAGE) if isinstance(source, dict) else None
    if kind == "tool_result":
        return "", part, _RESULT
    if isinstance(kind, str) and kind in _BLOCKS:
        name, slots = _BLOCKS[kind]
        return name, part, slots
    return None


def _fill(rest: Json, entry: Json) -> None:
    """Put the values of an entry back in place of the placeholders in its record."""
    kind = entry["type"]
    if kind == "session_info":
        rest["customTitle"] = entry.get("name")
        return
    attachment = rest.get("attachment")
    if kind == "message" and rest.get("type") == "attachment" and isinstance(attachment, dict):
        attachment["prompt"] = entry["message"].get("content")
        return
    inner = rest.get("message")
    if kind != "custom" and isinstance(inner, dict):
        _fill_message(rest, inner, entry.get("message", entry))


def _fill_message(rest: Json, inner: Json, message: Json) -> None:
    shown = message.get("summary", message.get("content"))
    if is_hole(inner.get("model")):
        inner["model"] = message.get("model")
    parts = inner.get("content")
    blocks = iter(shown if isinstance(shown, list) else ())
    if is_hole(parts):
        inner["content"] = _text(shown)
    elif message.get("role") == "toolResult" and isinstance(parts, list) and parts:
        part = parts[0]
        part["tool_use_id"] = message.get("toolCallId")
        if is_hole(part.get("content")):
            part["content"] = _text(shown)
        elif isinstance(part.get("content"), list):
            _fill_parts(part["content"], blocks)
        printed = rest.get("toolUseResult")
        if isinstance(printed, dict) and is_hole(printed.get("stdout")):
            printed["stdout"] = _text(shown)
    elif isinstance(parts, list):
        _fill_parts(parts, blocks)


def _fill_parts(parts: list[Any], blocks: Iterator[Json]) -> None:
    for index, part in enumerate(parts):
        if is_hole(part):
            block = next(blocks, {})
            name, slots = _PARTS[block["type"]]
            parts[index] = {"type": name} | {of: block.get(at) for of, (at, _) in slots.items()}
            continue
        if (found := _slots(part)) is None:
            continue
        _, holder, slots = found
        if any(is_hole(holder.get(name)) for name in slots):
            block = next(blocks, {})
            for name, (shown, _) in slots.items():
                holder[name] = block.get(shown)


def _text(shown: Any) -> Any:  # noqa: ANN401
    """Return the text of a content, if a block can hold it."""
    if isinstance(shown, list):
        return shown[0].get("text") if shown else None
    return shown
