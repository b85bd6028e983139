"""The checkpointer of LangGraph on treelined: each time travel is a branch."""

from ._saver import TreelinedSaver

__all__ = ["TreelinedSaver"]
