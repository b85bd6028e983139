"""The suite that LangGraph publishes, unchanged."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from langgraph.checkpoint.conformance.initializer import checkpointer_test
from langgraph.checkpoint.conformance.validate import validate

from treelined_langgraph import TreelinedSaver

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = os.environ.get("TREELINED_BIN", "treelined")


def test_every_capability_passes(tmp_path: Path) -> None:
    @checkpointer_test(name="TreelinedSaver")
    async def saver():  # noqa: ANN202
        with TreelinedSaver(command=COMMAND, session_dir=tmp_path / "sessions") as made:
            yield made

    report = asyncio.run(validate(saver))
    failures = [text for result in report.results.values() for text in result.failures or ()]
    assert failures == []
    assert sum(result.tests_passed for result in report.results.values()) == 81
