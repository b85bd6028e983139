#!/usr/bin/env python3
"""Asks the person before a move leaves a branch, if the last test run on this branch has failed."""

from __future__ import annotations

from typing import Any

from treelined import Client, TreelinedError, types

MAX_ANSWER_MS = 600_000


def leave(event: types.SessionBeforeTree, _over: object) -> types.EventAnswer | None:
    """Agree if no test run is left behind, if the last one has passed, or if the person agrees."""
    left: list[Any] = event["preparation"]["entriesToSummarize"]
    runs = [
        entry["message"]
        for entry in left
        if entry.get("message", {}).get("role") == "bashExecution"
    ]
    runs = [run for run in runs if "test" in run["command"]]
    if not runs or runs[-1].get("exitCode") == 0:
        return None
    client.answer_event(event_id=event["eventId"], extend_ms=MAX_ANSWER_MS)
    why = f"`{runs[-1]['command']}` failed, and nothing was run since."
    try:
        asked = client.ask_user(
            kind="confirm", title="Leave this branch?", message=why, session_id=event["sessionId"]
        )
    except TreelinedError as error:
        if error.kind != "noUser":
            raise
        return {"cancel": True, "reason": f"{why} Nobody is there to ask."}
    return None if asked.get("value") else {"cancel": True, "reason": why}


with Client(None, answers={"session_before_tree": leave}) as client:
    client.closed()
