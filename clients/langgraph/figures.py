"""Time checkpoints of a growing conversation beside LangGraph's own SQLite saver, and say the size.

`put` is the median of 1,000 checkpoints of a list that grows by one message of 200 bytes, `state` the newest checkpoint,
`history` a list of all of them. Needs `langgraph-checkpoint-sqlite`.
"""  # noqa: E501

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from treelined import Client

from treelined_langgraph import TreelinedSaver

STEPS = 1_000


def measure(name: str, saver: BaseCheckpointSaver[Any], folder: Path) -> None:
    where: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages: list[Any] = []
    times = []
    for step in range(STEPS):
        messages.append(HumanMessage(f"{step} " + "word " * 40, id=str(step)))
        version = {"messages": f"{step:032}.0"}
        values = {"channel_values": {"messages": list(messages)}, "channel_versions": version}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        began = time.perf_counter()
        where = saver.put(where, {**empty_checkpoint(), **values}, metadata, version)
        times.append(time.perf_counter() - began)
    began = time.perf_counter()
    found = saver.get_tuple({"configurable": {"thread_id": "t"}})
    state = time.perf_counter() - began
    assert found is not None
    assert len(found.checkpoint["channel_values"]["messages"]) == STEPS
    began = time.perf_counter()
    assert sum(1 for _ in saver.list({"configurable": {"thread_id": "t"}})) == STEPS
    history = time.perf_counter() - began
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    put = statistics.median(times) * 1e3
    print(
        f"{name}: put {put:.2f} ms, state {state * 1e3:.1f} ms, history {history:.2f} s, "
        f"{size / 1e6:.2f} MB"
    )


with tempfile.TemporaryDirectory() as place:
    own, theirs = Path(place, "own"), Path(place, "theirs")
    theirs.mkdir()
    with SqliteSaver.from_conn_string(str(theirs / "x.db")) as sqlite:
        measure("SQLite", sqlite, theirs)
    with Client(session_dir=str(own)) as client:
        measure("treelined", TreelinedSaver(client), own)
