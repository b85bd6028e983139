"""Stores an object without the names and values that are usual for records of Claude Code.

An object whose members are in a usual order becomes `[ORDER, OTHERS]`: the number of the order, and
the members that have another value than the usual one. `schema/stores.md` has the same tables.
Every line is complete in itself, so a damaged line takes no other one with it.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_START = ("parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch")
_END = ("toolUseResult", "sourceToolAssistantUUID", "thinkingMetadata", "todos", "permissionMode")
RECORDS = (
    (*_START, "slug", "type", "message", "uuid", "timestamp", *_END),
    (*_START, "slug", "message", "requestId", "type", "uuid", "timestamp"),
    (*_START, "type", "effort", "message", "requestId", "uuid", "timestamp", "slug", "entrypoint"),
)
MESSAGES = (
    ("role", "content"),
    ("model", "id", "type", "role", "content", "stop_reason", "stop_sequence", "usage"),
)


def usual_of(entry: Json) -> tuple[Json, Json]:
    """Return the usual members of the record of an entry, and of its message."""
    message = entry.get("message")
    is_answer = isinstance(message, dict) and message.get("role") == "assistant"
    kind = "assistant" if is_answer else "user"
    record: Json = {"parentUuid": 0, "isSidechain": False, "userType": "external"}
    record |= {"sessionId": 0, "type": kind, "uuid": 0, "timestamp": 0}
    return record, {"model": 0, "type": "message", "role": kind, "content": [0]}


def short(value: Json, orders: tuple[tuple[str, ...], ...], usual: Json) -> Any:  # noqa: ANN401
    """Return `[ORDER, OTHERS]`, or the object itself if its order is not usual."""
    names = list(value)
    for number, order in enumerate(orders):
        usually = [name for name in order if name in value or name in usual]
        if usually == names:
            others = {n: it for n, it in value.items() if n not in usual or not _same(it, usual[n])}
            return [number, others]
    return value


def long(value: Any, orders: tuple[tuple[str, ...], ...], usual: Json) -> Any:  # noqa: ANN401
    """Return the object that became `value` in `short`."""
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004
        return value
    number, others = value
    if type(number) is not int or not 0 <= number < len(orders) or not isinstance(others, dict):
        return value
    members = usual | others
    return {name: members[name] for name in orders[number] if name in members}


def _same(one: object, other: object) -> bool:
    # In Python, `0`, `0.0` and `False` are equal.
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
