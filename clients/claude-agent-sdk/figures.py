"""Measure this store, the SDK's store in memory, and a file of JSON lines.

`append` is the median of 300 appends of one record of about 800 bytes. `load` is the best of five
reads of 10,000 records. `list` is the time in which a new process lists the summaries of all
sessions.
"""

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from claude_agent_sdk import InMemorySessionStore, SessionStore
from treelined import Client

from treelined_claude_agent_sdk import TreelinedSessionStore

RECORDS = 10_000
KEY: Any = {"project_key": "-home-ada-project", "session_id": "s"}


def record(number: int) -> Any:
    role = "assistant" if number % 2 else "user"
    text = [{"type": "text", "text": f"{number} " + "word " * 40}]
    message: dict[str, Any] = {"role": role, "content": text}
    if number % 2:
        model = {"model": "claude-sonnet-4-5", "id": f"msg_{number:024}", "type": "message"}
        usage = {"input_tokens": number, "cache_read_input_tokens": 0, "output_tokens": 50}
        message = {**model, **message, "stop_reason": "end_turn", "usage": usage}
    return {
        "parentUuid": f"{number - 1:08}-0000-4000-8000-000000000000" if number else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ada/project",
        "sessionId": KEY["session_id"],
        "version": "2.1.207",
        "gitBranch": "main",
        "type": role,
        "message": message,
        "uuid": f"{number:08}-0000-4000-8000-000000000000",
        "timestamp": time.strftime("2026-03-01T%H:%M:%S.000Z", time.gmtime(number)),
    }


class Lines(SessionStore):
    """A store in one file, in the format of Claude's transcripts."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "s.jsonl"

    async def append(self, key: Any, entries: list[Any]) -> None:  # noqa: ARG002
        with self.file.open("a") as file:
            file.writelines(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)

    async def load(self, key: Any) -> list[Any] | None:  # noqa: ARG002
        with self.file.open() as file:
            return [json.loads(line) for line in file]


async def measure(name: str, store: SessionStore, folder: Path) -> None:
    times = []
    for number in range(300):
        began = time.perf_counter()
        await store.append(KEY, [record(number)])
        times.append(time.perf_counter() - began)
    for begin in range(300, RECORDS, 500):
        end = min(begin + 500, RECORDS)
        await store.append(KEY, [record(number) for number in range(begin, end)])
    loads = []
    for _ in range(5):
        began = time.perf_counter()
        found = await store.load(KEY)
        loads.append(time.perf_counter() - began)
        assert found is not None
        assert len(found) == RECORDS
    size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    append = statistics.median(times) * 1e3
    print(f"{name}: append {append:.2f} ms, load {min(loads) * 1e3:.0f} ms, {size / 1e6:.2f} MB")


async def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        own, theirs = Path(place, "own"), Path(place, "theirs")
        theirs.mkdir()
        await measure("memory", InMemorySessionStore(), theirs)
        await measure("lines", Lines(theirs), theirs)
        with Client(session_dir=str(own)) as client:
            await measure("treelined", TreelinedSessionStore(client), own)
        with Client(session_dir=str(own)) as client:
            began = time.perf_counter()
            await TreelinedSessionStore(client).list_session_summaries(KEY["project_key"])
            print(f"treelined: list {(time.perf_counter() - began) * 1e3:.0f} ms")


asyncio.run(main())
