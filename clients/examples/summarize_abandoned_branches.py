#!/usr/bin/env python3
"""Summarizes every abandoned branch in every session of a directory.

    summarize_abandoned_branches.py [--cwd DIR] [--summarizer outline]

The model does not see abandoned branches. This script moves the leaf to the tip of each of them,
and back with a summary. The summary is appended to the current branch, where the model sees it.
The script skips branches that already have a summary, so it can run every night. It also skips
sessions that wait for an answer. It needs the package `treelined` and the daemon `treelined`.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from treelined import Client, TreelinedError

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> int:
    """Summarize all sessions. Return exit code 1 if one of them has failed."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    arguments.add_argument("--cwd", default=os.getcwd(), help="the directory")  # noqa: PTH109
    arguments.add_argument("--summarizer", default="outline", help="the summarizer")
    given = arguments.parse_args()
    failed = False
    with Client(summarizer=given.summarizer) as client:
        for row in sessions(client, given.cwd):
            name = row.get("name") or row["sessionId"]
            try:
                client.open_session(path=row["path"])
                count = summarize(client, row["sessionId"])
                client.close_session(session_id=row["sessionId"])
            except TreelinedError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
            else:
                print(f"{name}: {count} summarized")
    return int(failed)


def sessions(client: Client, cwd: str) -> Iterator[Any]:
    """Return the rows of all sessions of a directory."""
    page = client.list_sessions(cwd=cwd)
    yield from page["sessions"]
    while cursor := page.get("nextCursor"):
        page = client.list_sessions(cwd=cwd, cursor=cursor)
        yield from page["sessions"]


def summarize(client: Client, session: str) -> int:
    """Summarize the abandoned branches of a session; return their number."""
    home = client.get_leaf(session_id=session)
    entry: Any = home.get("entry")
    if entry and entry["type"] == "message" and entry["message"]["role"] == "user":
        # The session waits for an answer. A move to the user message would go before it.
        return 0
    done = summarized(client, session)
    leaf = home["leafId"]
    count = 0
    for branch in client.list_branches(session_id=session)["branches"]:
        if branch["isActive"] or branch["tipId"] in done or leaf is None:
            continue
        client.set_leaf(session_id=session, leaf_id=branch["tipId"], expected_leaf_id=leaf)
        try:
            moved = client.navigate_tree(session_id=session, target_id=leaf, summarize=True)
        except TreelinedError:
            client.set_leaf(session_id=session, leaf_id=leaf)
            raise
        count += "summaryEntry" in moved
        leaf = moved["newLeafId"]
    return count


def summarized(client: Client, session: str) -> set[str]:
    """Return the tips of the branches that have a summary."""
    tips: set[str] = set()
    since = None
    while True:
        page = client.get_entries(session_id=session, since=since)
        for entry in page["entries"]:
            if entry["type"] == "branch_summary":
                tips.add(entry["fromId"])
        since = page.get("nextCursor")
        if since is None:
            return tips


if __name__ == "__main__":
    sys.exit(main())
