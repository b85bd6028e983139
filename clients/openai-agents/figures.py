"""Measure this session and the SDK's own SQLite session.

`append` is the median of 300 appends of one item of 200 bytes. `load` is the best of five reads of
10,000 items.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from agents import SQLiteSession
from agents.memory.session import SessionABC
from treelined import Client

from treelined_openai_agents import TreelinedSession

ITEMS = 10_000


def user(number: int) -> Any:
    return {"role": "user", "content": f"{number} " + "word " * 40}


async def measure(name: str, session: SessionABC, file: Path) -> None:
    times = []
    for number in range(300):
        began = time.perf_counter()
        await session.add_items([user(number)])
        times.append(time.perf_counter() - began)
    await session.add_items([user(number) for number in range(300, ITEMS)])
    loads = []
    for _ in range(5):
        began = time.perf_counter()
        found = await session.get_items()
        loads.append(time.perf_counter() - began)
        assert len(found) == ITEMS
    size = sum(path.stat().st_size for path in file.rglob("*") if path.is_file())
    append = statistics.median(times) * 1e3
    print(f"{name}: append {append:.2f} ms, load {min(loads) * 1e3:.0f} ms, {size / 1e6:.2f} MB")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        own, theirs = Path(folder, "own"), Path(folder, "theirs")
        theirs.mkdir()
        await measure("SQLite", SQLiteSession("x", theirs / "x.db"), theirs)
        with Client(session_dir=str(own)) as client:
            await measure("treelined", TreelinedSession("x", client=client), own)


asyncio.run(main())
