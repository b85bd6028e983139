#!/usr/bin/env python3
"""Labels every test run and every commit, so that the tree shows where the tests passed."""

from __future__ import annotations

from typing import Any

from treelined import Client, types


def label(event: types.EntriesAppended) -> None:
    """Label those of the new entries that are commands of one of these kinds."""
    for entry_id in event["entryIds"]:
        found = client.get_entry(session_id=event["sessionId"], entry_id=entry_id)
        entry: Any = found["entry"]
        run = entry.get("message", {})
        if run.get("role") != "bashExecution":
            continue
        kind = next((kind for kind in ("git commit", "test") if kind in run["command"]), None)
        if kind is not None:
            outcome = "done" if run.get("exitCode") == 0 else "failed"
            client.append_label(
                session_id=event["sessionId"], target_id=entry_id, label=f"{kind} {outcome}"
            )


with Client(None) as client:
    client.on("entries_appended", label)
    client.closed()
