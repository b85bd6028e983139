#!/usr/bin/env python3
"""A todo list for each branch: `/todo` shows it, `/todo TEXT` adds, `/todo done N` ticks off."""

from __future__ import annotations

from typing import Any

from treelined import Client, types


def todo(event: types.CommandInvoked, _over: object) -> str:
    """Read the list of the current branch from its path, and append each change."""
    session = event.get("sessionId")
    if session is None:
        raise ValueError("a todo list belongs to a session: open one")
    path: list[Any] = client.get_path(session_id=session)["entries"]
    lists = [entry["details"]["items"] for entry in path if entry.get("customType") == "todo"]
    items = lists[-1] if lists else []
    words = event["args"].split()
    if words[:1] == ["done"]:
        items[int(words[1]) - 1]["done"] = True
    elif words:
        items.append({"text": " ".join(words), "done": False})
    lines = [
        f"{n}. [{'x' if item['done'] else ' '}] {item['text']}" for n, item in enumerate(items, 1)
    ]
    text = "\n".join(lines) or "nothing to do"
    if words:
        details = {"items": items, "done": sum(item["done"] for item in items), "total": len(items)}
        entry = {"type": "custom_message", "customType": "todo", "content": text, "display": True}
        client.append_entries(session_id=session, entries=[{**entry, "details": details}])
    return text


with Client(None) as client:
    client.register_renderer(
        custom_type="todo", preview="{details.done}/{details.total} done", icon="☑"
    )
    client.offer_command(
        "todo", todo, description="The list of this branch", argument_hint="[TEXT | done N]"
    )
    client.closed()
